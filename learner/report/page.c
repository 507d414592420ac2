/* See page.h. Everything comes from the run folders: equal runs give equal pages. */
#include "learner/report/page.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "learner/report/summary.h"
#include "learner/track/plot.h"

#include <math.h>

enum { N_COLOURS = 8 };
static const char *const colours[N_COLOURS] = {"#1f6fb4", "#d1495b", "#2e933c", "#8e4fa8",
                                               "#c77d1e", "#0e8a92", "#7a5c43", "#555b6e"};

static void put_style(tg_buf *b) {
    tg_buf_printf(
        b,
        "<style>%s"
        "body{font:14px/1.45 sans-serif;color:#222;background:#fff;margin:24px "
        "auto;max-width:1300px;"
        "padding:0 16px}h1{font-size:21px}"
        "table{border-collapse:collapse;margin:12px 0 20px}th,td{padding:4px 14px 4px 0;"
        "text-align:left;border-bottom:1px solid #e4e4e4}td.n,th.n{text-align:right}"
        ".legend button{border:0;background:none;font:inherit;cursor:pointer;margin-right:18px;"
        "padding:2px 0}.legend i{display:inline-block;width:14px;height:4px;vertical-align:middle;"
        "margin-right:6px}.legend .off{opacity:.35}"
        "#panels{display:flex;flex-wrap:wrap}#panels svg{position:relative}"
        "#tip{position:fixed;display:none;background:#222;color:#fff;padding:6px "
        "9px;font-size:12px;"
        "border-radius:4px;pointer-events:none;white-space:pre}",
        tg_plot_style);
    for (int k = 0; k < N_COLOURS; k++)
        tg_buf_printf(b, "polyline.l%d{stroke:%s}polygon.b%d{fill:%s}.legend .k%d i{background:%s}",
                      k, colours[k], k, colours[k], k, colours[k]);
    tg_buf_puts(b, "</style>\n");
}

static void put_number(tg_buf *b, double v) {
    if (isfinite(v))
        tg_buf_printf(b, "<td class=\"n\">%.4g</td>", v);
    else
        tg_buf_puts(b, "<td class=\"n\">&ndash;</td>");
}

static void put_table(tg_buf *b, const tg_report *r, const tg_report_summary *rows) {
    tg_buf_puts(b, "<table><tr><th>runs</th><th class=\"n\">seeds</th><th class=\"n\">");
    tg_plot_escaped(b, rows->x_name);
    tg_buf_puts(b, "s</th><th class=\"n\">first</th><th class=\"n\">last five</th><th class=\"n\">"
                   "&plusmn; 95&nbsp;%</th><th class=\"n\">KL at the end</th></tr>\n");
    for (int g = 0; g < r->n_groups; g++) {
        const tg_report_row *row = &rows->at[g];
        tg_buf_puts(b, "<tr><td>");
        tg_plot_escaped(b, r->groups[g].label);
        tg_buf_printf(b, "</td><td class=\"n\">%d</td><td class=\"n\">%g</td>", r->groups[g].n_runs,
                      row->length);
        put_number(b, row->first);
        put_number(b, row->last);
        put_number(b, row->half);
        put_number(b, row->kl);
        tg_buf_puts(b, "</tr>\n");
    }
    tg_buf_puts(b, "</table>\n");
}

static void put_legend(tg_buf *b, const tg_report *r) {
    tg_buf_puts(b, "<p class=\"legend\">");
    for (int g = 0; g < r->n_groups; g++) {
        tg_buf_printf(b, "<button class=\"k%d\" data-group=\"%d\"><i></i>", g % N_COLOURS, g);
        tg_plot_escaped(b, r->groups[g].label);
        tg_buf_puts(b, "</button>");
    }
    tg_buf_puts(b, "</p>\n");
}

/* The numbers of a panel for the script: {"x": […], "y": […]} a group. */
static void put_data(tg_buf *b, const tg_band *bands, int n) {
    tg_buf_putc(b, '[');
    for (int g = 0; g < n; g++) {
        tg_buf_printf(b, "%s{\"x\":[", g ? "," : "");
        for (int i = 0; i < bands[g].n; i++) tg_buf_printf(b, "%s%g", i ? "," : "", bands[g].x[i]);
        tg_buf_puts(b, "],\"y\":[");
        for (int i = 0; i < bands[g].n; i++)
            tg_buf_printf(b, "%s%.5g", i ? "," : "", bands[g].mean[i]);
        tg_buf_puts(b, "]}");
    }
    tg_buf_putc(b, ']');
}

static tg_status put_panel(tg_buf *b, const tg_report *r, int title, const tg_band *bands,
                           tg_error *err) {
    tg_curve *curves = tg_alloc_array((size_t)r->n_groups, sizeof *curves);
    char(*names)[2][24] = tg_alloc_array((size_t)r->n_groups, sizeof *names);
    if (!curves || !names) {
        tg_free(curves);
        tg_free(names);
        return tg_fail_nomem(err, (size_t)r->n_groups * sizeof *curves);
    }
    bool any = false;
    for (int g = 0; g < r->n_groups; g++) {
        const tg_band *band = &bands[g];
        bool wide = band->n_runs > 1;
        snprintf(names[g][0], sizeof names[g][0], "l%d g%d", g % N_COLOURS, g);
        snprintf(names[g][1], sizeof names[g][1], "b%d g%d", g % N_COLOURS, g);
        curves[g] = (tg_curve){
            band->x,     band->mean, wide ? band->lo : NULL, wide ? band->hi : NULL, band->n,
            names[g][0], names[g][1]};
        any = any || band->n >= 2;
    }
    if (any) {
        tg_buf_printf(b,
                      "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
                      "aria-label=\"",
                      TG_PLOT_W, TG_PLOT_H, TG_PLOT_W, TG_PLOT_H);
        tg_plot_escaped(b, r->titles[title]);
        tg_buf_puts(b, "\" data-curves='");
        put_data(b, bands, r->n_groups);
        tg_buf_puts(b, "'>\n");
        tg_plot_draw(b, r->titles[title], curves, r->n_groups, 0, 0);
        tg_buf_puts(b, "</svg>\n");
    }
    tg_free(curves);
    tg_free(names);
    return TG_OK;
}

static tg_status put_panels(tg_buf *b, const tg_report *r, tg_error *err) {
    tg_band *bands = tg_alloc_array((size_t)r->n_groups, sizeof *bands);
    if (!bands) return tg_fail_nomem(err, (size_t)r->n_groups * sizeof *bands);
    tg_buf_puts(b, "<div id=\"panels\">\n");
    tg_status st = TG_OK;
    for (int i = 0; i < r->n_titles && st == TG_OK; i++) {
        st = tg_report_bands(r, i, bands, err);
        if (st == TG_OK) st = put_panel(b, r, i, bands, err);
        for (int g = 0; g < r->n_groups; g++) tg_band_fini(&bands[g]);
    }
    tg_buf_puts(b, "</div>\n");
    tg_free(bands);
    return st;
}

/* The plot area inside a panel is 62 .. 406 of 420 wide (plot.c). */
static const char script[] =
    "<div id=\"tip\"></div>\n<script>\n"
    "const tip = document.getElementById('tip');\n"
    "const buttons = [...document.querySelectorAll('.legend button')];\n"
    "const names = buttons.map(b => b.textContent);\n"
    "for (const b of buttons) b.onclick = () => {\n"
    "  const off = b.classList.toggle('off');\n"
    "  document.querySelectorAll('.g' + b.dataset.group).forEach(e => e.style.display = off ? "
    "'none' : '');\n"
    "};\n"
    "for (const svg of document.querySelectorAll('#panels svg')) {\n"
    "  const curves = JSON.parse(svg.dataset.curves).filter(c => c.x.length > 1);\n"
    "  const all = JSON.parse(svg.dataset.curves);\n"
    "  const x0 = Math.min(...curves.map(c => c.x[0])), x1 = Math.max(...curves.map(c => "
    "c.x.at(-1)));\n"
    "  svg.onmousemove = e => {\n"
    "    const box = svg.getBoundingClientRect();\n"
    "    const x = x0 + ((e.clientX - box.left) * 420 / box.width - 62) / 344 * (x1 - x0);\n"
    "    const lines = [];\n"
    "    all.forEach((c, g) => {\n"
    "      if (c.x.length < 2 || buttons[g].classList.contains('off')) return;\n"
    "      let k = 0;\n"
    "      c.x.forEach((v, i) => { if (Math.abs(v - x) < Math.abs(c.x[k] - x)) k = i; });\n"
    "      lines.push(names[g] + ': ' + c.y[k] + ' at ' + c.x[k]);\n"
    "    });\n"
    "    tip.textContent = lines.join('\\n');\n"
    "    tip.style.cssText = 'display:block;left:' + (e.clientX + 14) + 'px;top:' + (e.clientY + "
    "10) + 'px';\n"
    "  };\n"
    "  svg.onmouseleave = () => tip.style.display = 'none';\n"
    "}\n</script>\n";

static void put_folders(tg_buf *b, const tg_report *r) {
    tg_buf_puts(b, "<table><tr><th>folder</th><th class=\"n\">seed</th><th>runs</th></tr>\n");
    for (int i = 0; i < r->n_runs; i++) {
        tg_buf_puts(b, "<tr><td>");
        tg_plot_escaped(b, r->runs[i].dir);
        tg_buf_printf(b, "</td><td class=\"n\">%s</td><td>", r->runs[i].seed);
        tg_plot_escaped(b, r->groups[r->runs[i].group].label);
        tg_buf_puts(b, "</td></tr>\n");
    }
    tg_buf_puts(b, "</table>\n");
}

tg_status tg_report_page(const tg_report *r, tg_buf *out, tg_error *err) {
    tg_report_summary rows;
    tg_status st = tg_report_summary_make(&rows, r, err);
    if (st != TG_OK) return st;
    tg_buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width\">"
                     "<title>textgen report</title>\n");
    put_style(out);
    tg_buf_printf(out, "</head><body>\n<h1>%d run%s</h1>\n", r->n_runs, r->n_runs == 1 ? "" : "s");
    tg_buf_puts(
        out, "<p>Of each group of runs that differ only in their seed: the mean, and a 95&nbsp;% "
             "confidence band (Student's t) where there are several. The table shows ");
    tg_plot_escaped(out, rows.what);
    tg_buf_puts(out, ".</p>\n");
    put_table(out, r, &rows);
    put_legend(out, r);
    st = put_panels(out, r, err);
    if (st == TG_OK) {
        put_folders(out, r);
        tg_buf_puts(out, script);
        tg_buf_puts(out, "</body></html>\n");
        if (out->failed) st = tg_fail_nomem(err, out->len);
    }
    tg_report_summary_fini(&rows);
    return st;
}

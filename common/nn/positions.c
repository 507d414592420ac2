/* Frequencies are rounded to f32 at every step of their making and before they are multiplied by the position, as transformers does: the
 * angles of far positions depend on each of these roundings. */
#include "common/nn/positions.h"

#include "common/base/check.h"

#include <math.h>

#define PI 3.14159265358979323846

/* Llama 3.1: long waves are stretched by the factor, short ones kept, those between interpolated. torch divides a number by a tensor as the
 * number times the tensor's reciprocal. */
static float llama3(const tg_rope *r, float freq) {
    const float wave = 1 / freq * (float)(2 * PI), context = (float)r->original_positions;
    if (wave > context / r->low_freq) return freq / r->factor;
    if (wave < context / r->high_freq) return freq;
    const float smooth = (1 / wave * context - r->low_freq) / (r->high_freq - r->low_freq);
    return (1 - smooth) * freq / r->factor + smooth * freq;
}

/* The dimension whose wave turns `turns` times within the original context (Peng et al. 2023, section 3.2). */
static double yarn_dimension(const tg_rope *r, double turns) {
    return r->dims * log(r->original_positions / (turns * 2 * PI)) / (2 * log((double)r->theta));
}

static float yarn(const tg_rope *r, float wave, int j) {
    double low = yarn_dimension(r, (double)r->beta_fast),
           high = yarn_dimension(r, (double)r->beta_slow);
    if (!r->keep_range) low = floor(low), high = ceil(high);
    low = fmax(low, 0), high = fmin(high, r->dims - 1);
    if (low == high) high += 0.001;
    const float ramp = fminf(fmaxf(((float)j - (float)low) / (float)(high - low), 0), 1);
    const float kept = 1 - ramp;
    return 1 / (r->factor * wave) * (1 - kept) + 1 / wave * kept;
}

/* In a long text the base grows with it, so that the slowest wave still turns about as far as it was trained to. */
static float dynamic_base(const tg_rope *r, int length) {
    const float ratio = r->factor * (float)length / (float)r->original_positions - r->excess;
    return r->theta * (float)pow((double)ratio, tg_rope_span(r) / (tg_rope_span(r) - 2.0));
}

static float frequency(const tg_rope *r, int length, int j) {
    const bool grown = tg_rope_varies(r) && length > r->original_positions;
    const float base = grown && r->kind == TG_ROPE_DYNAMIC ? dynamic_base(r, length) : r->theta;
    const float exponent = (float)(2 * j) / (float)tg_rope_span(r);
    const float wave = (float)pow((double)base, (double)exponent), freq = 1 / wave;
    switch (r->kind) {
    case TG_ROPE_DEFAULT:
    case TG_ROPE_DYNAMIC: break;
    case TG_ROPE_LINEAR: return freq / r->factor;
    case TG_ROPE_LLAMA3: return llama3(r, freq);
    case TG_ROPE_YARN: return yarn(r, wave, j);
    case TG_ROPE_PROPORTIONAL: return j < r->angles ? freq / r->factor : 0;
    case TG_ROPE_LONG: return 1 / ((grown ? r->long_stretch : r->stretch)[j] * wave);
    }
    return freq;
}

void tg_rope_rows(const tg_rope *r, int length, int first, int n, float *rows) {
    const int half = r->dims / 2;
    const bool scaled = r->kind == TG_ROPE_YARN || r->kind == TG_ROPE_LONG;
    const float factor = scaled ? r->attention : 1.0f;
    for (int j = 0; j < half; j++) {
        float freq = frequency(r, length, j);
        for (int i = 0; i < n; i++) {
            float angle = (float)(first + i) * freq, *row = rows + (size_t)i * (size_t)r->dims;
            row[j] = cosf(angle) * factor;
            row[half + j] = sinf(angle) * factor;
        }
    }
}

void tg_rope_table(const tg_rope *r, int positions, float *table) {
    const int steady = tg_rope_varies(r) ? TG_MIN(positions, r->original_positions) : positions;
    tg_rope_rows(r, steady, 0, steady, table);
    for (int p = steady; p < positions; p++)
        tg_rope_rows(r, p + 1, p, 1, table + (size_t)p * (size_t)r->dims);
}

void tg_alibi_slopes(int heads, float *slopes) {
    int power = 1;
    while (2 * power <= heads) power *= 2;
    for (int h = 0; h < heads; h++) /* beyond a power of two: every other slope of the next one */
        slopes[h] = (float)(h < power ? pow(2, -8.0 * (h + 1) / power)
                                      : pow(2, -4.0 * (2 * (h - power) + 1) / power));
}

void tg_waves_table(int positions, int width, float *table) {
    const int sines = width - width / 2;
    for (int j = 0; j < width; j++) {
        const int pair = j / 2;
        double freq = pow(10000, 2.0 * pair / width);
        int column = j % 2 ? sines + pair : pair;
        for (int p = 0; p < positions; p++)
            table[(size_t)p * (size_t)width + (size_t)column] =
                (float)(j % 2 ? cos(p / freq) : sin(p / freq));
    }
}

/* In f32, as transformers does: the bounds of the runs depend on that rounding. */
static int bucket_of(int distance, int buckets, int max_distance) {
    const int exact = buckets / 2;
    if (distance < exact) return distance;
    float part = logf((float)distance / (float)exact) /
                 (float)log((double)max_distance / (double)exact) * (float)(buckets - exact);
    return TG_MIN(exact + (int)part, buckets - 1);
}

void tg_rel_buckets(int buckets, int max_distance, bool both, int reach, int32_t *out) {
    const int half = both ? buckets / 2 : buckets;
    for (int d = -reach; d <= reach; d++) {
        int near = d < 0 ? both ? -d : 0 : d;
        out[reach + d] = bucket_of(near, half, max_distance) + (both && d < 0 ? half : 0);
    }
}

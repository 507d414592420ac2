/* textgen keygen: NAME.key, NAME.pub and, with a role, a line of the allow-list. Existing files are never
 * written over; the secret is printed nowhere. */
#include "common/cli/keygen.h"

#include "common/base/file.h"
#include "common/config/args.h"
#include "common/net/allow.h"
#include "common/net/keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct request {
    const char *name, *role, *tenant, *allow, *from;
} request;

static tg_status check_request(const request *r, tg_error *err) {
    if (!r->name == !r->from)
        return tg_fail(err, TG_USAGE, "give a NAME for a new pair, or --from FILE");
    if (r->role && !tg_allow_is_role(r->role, strlen(r->role)))
        return tg_fail(err, TG_USAGE,
                       "--role %s: unknown; expected client, worker, reward or admin", r->role);
    if (!tg_allow_is_tenant(r->tenant, strlen(r->tenant)))
        return tg_fail(err, TG_USAGE,
                       "--tenant %s: expected 1 to %d letters, digits, '.', '_' and '-'", r->tenant,
                       TG_TENANT_MAX);
    if ((r->allow || r->from) && !r->role)
        return tg_fail(err, TG_USAGE, "%s needs --role client, worker, reward or admin",
                       r->allow ? "--allow" : "--from");
    return TG_OK;
}

/* Appends the line; a new file gets mode 0644, a list that is already there must be whole. */
static tg_status add_line(const char *path, const char *line, tg_error *err) {
    if (tg_path_exists(path)) {
        tg_allow *list;
        tg_status st = tg_allow_open(&list, path, err);
        if (st != TG_OK) return st;
        tg_allow_close(&list);
        return tg_file_append(path, line, strlen(line), err);
    }
    tg_buf text = {0};
    tg_buf_printf(&text, "# key (40 characters)                     role     tenant\n%s", line);
    tg_status st = text.failed ? tg_fail_nomem(err, strlen(line))
                               : tg_file_append(path, text.data, text.len, err);
    tg_buf_fini(&text);
    if (st == TG_OK && chmod(path, 0644) != 0)
        st = tg_fail_errno(err, TG_IO, "%s: cannot set mode 0644", path);
    return st;
}

static tg_status make_pair(const request *r, char public_key[TG_KEY_TEXT + 1], tg_error *err) {
    tg_key_pair pair;
    tg_status st = tg_key_pair_create(&pair, err);
    if (st == TG_OK) st = tg_key_pair_write(&pair, r->name, err);
    if (st == TG_OK) {
        memcpy(public_key, pair.public_key, sizeof pair.public_key);
        printf("%s.key  the key pair: stays where it is used, mode 0600\n", r->name);
        printf("%s.pub  the public key: for others\n", r->name);
    }
    tg_key_wipe(&pair, sizeof pair);
    return st;
}

static tg_status keygen(const request *r, tg_error *err) {
    char public_key[TG_KEY_TEXT + 1], line[160];
    tg_status st = check_request(r, err);
    if (st == TG_OK)
        st = r->from ? tg_key_public_read(public_key, r->from, err) : make_pair(r, public_key, err);
    if (st != TG_OK) return st;
    if (!r->role) {
        printf("public key: %s\n", public_key);
        return TG_OK;
    }
    snprintf(line, sizeof line, "%s  %-7s  %s\n", public_key, r->role, r->tenant);
    if (!r->allow) {
        printf("line for the server's allow-list:\n%s", line);
        return TG_OK;
    }
    st = add_line(r->allow, line, err);
    if (st == TG_OK) printf("%s  has its line as %s of %s\n", r->allow, r->role, r->tenant);
    return st;
}

int tg_cmd_keygen(int argc, char **argv) {
    request r = {.tenant = "default"};
    const tg_flag flags[] = {
        {"role", TG_FLAG_STR, &r.role, "ROLE",
         "What the key may be: client (learner, gym), worker, reward, or admin (any)."},
        {"tenant", TG_FLAG_STR, &r.tenant, "NAME",
         "Whose key it is: tenants do not see each other's episodes (default)."},
        {"allow", TG_FLAG_STR, &r.allow, "FILE", "Append the key's line to this allow-list."},
        {"from", TG_FLAG_STR, &r.from, "KEY|FILE",
         "Make the line for a public key that is already there."},
        {0}};
    const tg_args_spec spec = {
        "textgen keygen",
        "NAME [--role ROLE [--tenant NAME] [--allow FILE]]",
        "Makes a key pair for encrypted connections: NAME.key (mode 0600) and NAME.pub. Never "
        "overwrites.",
        flags,
        "  textgen keygen broker\n"
        "  textgen keygen learner --role client --tenant team-a --allow allow.txt\n"
        "  textgen keygen worker --role worker --tenant pool --allow allow.txt\n"
        "  textgen keygen --from colleague.pub --role client --tenant team-b --allow allow.txt\n"
        "  textgen-env --config c.yml --bind tcp://0.0.0.0:5555 --key broker.key --allow "
        "allow.txt\n",
        0,
        1,
        true};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) {
        r.name = args.n_positional ? args.positional[0] : NULL;
        st = keygen(&r, &err);
    }
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}

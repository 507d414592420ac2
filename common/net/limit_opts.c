/* Bounds of the options, and where they go. */
#include "common/net/limit_opts.h"

#include "proto/limits.h"

static tg_status check(const char *flag, int64_t value, int64_t low, int64_t high, tg_error *err) {
    if (value >= low && value <= high) return TG_OK;
    return tg_fail(err, TG_USAGE, "--%s is %lld to %lld, not %lld", flag, (long long)low,
                   (long long)high, (long long)value);
}

tg_status tg_limit_opts_check(const tg_limit_opts *o, tg_error *err) {
    tg_status st = check("max-message", o->max_message, 2, TG_LIMIT_MESSAGE >> 20, err);
    if (st == TG_OK) st = check("max-slots", o->max_slots, 1, TG_LIMIT_SLOTS, err);
    if (st == TG_OK) st = check("max-batch", o->max_batch, 1, TG_LIMIT_BATCH, err);
    if (st == TG_OK) st = check("max-tenant-sessions", o->max_tenant_sessions, 0, 1 << 20, err);
    if (st == TG_OK) st = check("handshake-ms", o->handshake_ms, 100, 600000, err);
    return st;
}

void tg_limit_opts_apply(const tg_limit_opts *o, tg_link_opts *link) {
    link->limits.max_message = (uint32_t)o->max_message << 20;
    link->limits.max_slots = (uint32_t)o->max_slots;
    link->limits.max_batch = (uint32_t)o->max_batch;
    link->max_tenant_sessions = (size_t)o->max_tenant_sessions;
    link->handshake_ms = (int)o->handshake_ms;
}

-- rebuild (begin): keeps until when the counters of a closed SKU have counted, for a
-- rebuild writes at times of its own and may be begun anew.
-- ARGV +1 the replication id that the rebuild began with.
-- Answers {verdict, wake, microseconds}: ok.
if not SHUT or SHUT[1] ~= 'closed' or MISSING or SHUT[2] ~= arg(1) then return SHUT or { 'changed', 0 } end
redis.call('HSETNX', K_STOCK, 'counted_until', int(S.seen))
return { 'ok', 0, tonumber(redis.call('HGET', K_STOCK, 'counted_until')) }

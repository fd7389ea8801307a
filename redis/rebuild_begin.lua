-- rebuild (begin): makes a closed SKU ready to be rebuilt by one rebuild, and keeps
-- until when its counters have counted, for a rebuild writes at times of its own and
-- may be begun anew.
-- ARGV +1 the replication id of the server, +2 the word of this rebuild, +3 the time
-- in microseconds up to which the book has audited sales, +4 the book's generation,
-- +5 the units that came back.
-- A stock hash that is gone is written anew, without a fence. The newest line of a
-- ledger that is still there has its counters; without one they begin at 0 and have
-- counted nothing. The SKU's time goes on from what was seen, or a sale would be
-- earlier than those that were audited.
-- Answers {verdict, wake, microseconds until which the counters have counted}: ok.
if not SHUT or SHUT[1] ~= 'closed' or SHUT[2] ~= arg(1) or arg(1) == '' then return SHUT or { 'changed', 0 } end
settled = true
local from = num(3)
if MISSING then
  local line = {}
  local newest = redis.call('XREVRANGE', K_LEDGER, '+', '-', 'COUNT', 1)[1]
  for i = 1, newest and #newest[2] or 0, 2 do line[newest[2][i]] = tonumber(newest[2][i + 1]) end
  local counted = (line.t or 0) * 1000
  from = math.max(from, counted)
  redis.call('DEL', K_STOCK)
  redis.call('HSET', K_STOCK, 'layout', LAYOUT, 'counted_until', int(counted))
  for name, field in pairs({ on_hand = 'oh', held = 'h', offered = 'o', sold = 's', n = 'n', epoch = 'e' }) do
    set(name, line[field] or 0)
  end
  if newest then set('returned', num(5)) end -- they are not among the line's sold ones any more
  set('gen', math.max(num(4), line.g or 0))
else
  redis.call('HSETNX', K_STOCK, 'counted_until', int(S.seen))
end
if from > NOW_US then
  AHEAD = AHEAD + from - NOW_US
  NOW_US = from
  NOW = math.floor(NOW_US / 1000)
end
if num(4) > S.gen then
  -- Whoever was back before has no place then, and gets it when all places are put right.
  set('gen', num(4) - 1)
  raise_generation()
end
redis.call('HSET', K_STOCK, 'rebuild', arg(2))
seen()
return finish('ok', tonumber(redis.call('HGET', K_STOCK, 'counted_until')))

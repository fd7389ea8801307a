-- repair (hold): gives an open Hold its record back.
-- ARGV +1 who rebuilds (repairing.lua), "" for an open SKU,
-- +2 hold id, +3 units, +4 person, +5 entry id or "", +6 generation, +7 created ms,
-- +8 deadline ms, +9 "1" when it was extended, +10 the lines of a cart on its first
-- line, or "", +11 actor.
-- Its units stand in the counters still, and only the record is written; unless repair
-- (count) has freed as many since: then they are held again, or its end would free them
-- a second time. What that was wrong about, repair (count) brings together. A Hold that has ended meanwhile leaves a
-- record without an owner, which repair (gone) ends.
-- Answers {verdict, wake}: ok; existing, young.
local REBUILDS = rebuilds(arg(1))
if SHUT and not REBUILDS then return SHUT end
if REBUILDS then settled = true else sweep() end
read_stock({ 'mended', 'freed' })
local id, entry = arg(2), arg(5)
if get_hold(id) then return finish('existing') end
if not REBUILDS and num(7) > NOW - LEASE - 60000 then return finish('young') end
local h = new_hold('held', num(3), arg(4), entry, num(6), num(8), arg(10))
h[H_CREATED] = num(7)
h[H_EXTENDED] = num(9)
put_hold(id, h)
redis.call('ZREM', K_PURGE, 'h:' .. id)
add('mended', 1)
hold_line('repair', 'restored', id, h, arg(11), { reason = 'its record was lost' })
if not SHUT and S.freed >= h[H_UNITS] then
  add('freed', -h[H_UNITS])
  add('held', h[H_UNITS])
  ledger('repair', 'counted', h[H_UNITS], '', { other = 'held', actor = arg(11), reason = 'held again by ' .. id })
end
return finish('ok')

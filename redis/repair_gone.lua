-- repair (gone): ends a live record whose owner does not live.
-- ARGV +1 who rebuilds (repairing.lua), "" for an open SKU,
-- +2 hold or entry id, +3 the record's version when the owner was found missing,
-- +4 actor.
-- Of a held hold: its units go back, and its entry misses a turn. Of an entry: it
-- ends as removed, and its offer with it; a hold that was pressed runs on. A lease
-- ends by itself, and an entry that has a start in the outbox gets its owner yet.
-- Answers {verdict, wake}: ok; changed (another version, or no record that needs an
-- owner), young (not yet a lease and a minute old), unknown.
local REBUILDS = rebuilds(arg(1))
if SHUT and not REBUILDS then return SHUT end
if REBUILDS then settled = true else sweep() end
local id, version, actor = arg(2), num(3), arg(4)
local born = NOW - LEASE - 60000
if string.sub(id, 1, 5) == 'hold_' then
  local h = get_hold(id)
  if not h then return finish('unknown') end
  if h[H_VERSION] ~= version or h[H_STATE] ~= 'held' then return finish('changed') end
  if not REBUILDS and h[H_CREATED] > born then return finish('young') end
  give_back(id, h, 'released', 'release', 'reconcile', actor)
  miss_turn(h[H_ENTRY], true)
  return finish('ok')
end
local e = get_entry(id)
if not e then return finish('unknown') end
local starts = e[E_ACK] == 0 and redis.call('HEXISTS', K_PARCELS, 's:' .. id) == 1
if e[E_VERSION] ~= version or not entry_live(e) or starts or e[E_LEAVING] == 1 then return finish('changed') end
if not REBUILDS and tonumber(e[E_ARRIVAL]) > born * 1000 then return finish('young') end
if e[E_STATE] == 'holding' then
  e[E_LEAVING] = 1
  put_entry(id, e)
else
  local h = e[E_STATE] == 'offered' and get_hold(e[E_HOLD])
  if h and h[H_STATE] == 'offered' then give_back(e[E_HOLD], h, 'released', 'release', 'reconcile', actor) end
  end_entry(id, 'removed', false)
  ledger('leave', 'removed', e[E_UNITS], id, { person = e[E_PERSON], actor = actor, reason = 'reconcile' })
end
return finish('ok')

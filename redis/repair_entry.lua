-- repair (entry): gives an open WaitlistEntry its record back, at the place of its
-- arrival.
-- ARGV +1 who rebuilds (repairing.lua), "" for an open SKU,
-- +2 entry id, +3 units, +4 person, +5 arrival in microseconds, +6 the hold id of its
-- last offer or "", +7 its generation, +8 actor, +9 the turns that
-- it has missed, +10 "1" when its person left while its hold ran on, +11 "1" when its
-- workflow still takes that offer or hold for live, +12 the language of its pages or "".
-- Whether it waits, is offered or holds is what that hold's record says now. A
-- person who has joined anew keeps the new place: the old entry ends as removed, and
-- its workflow is told.
-- Answers {verdict, wake}: ok; existing, young.
local REBUILDS = rebuilds(arg(1))
if SHUT and not REBUILDS then return SHUT end
if REBUILDS then settled = true else sweep() end
local id, person, hold = arg(2), arg(4), arg(6)
if get_entry(id) then return finish('existing') end
if not REBUILDS and num(5) > NOW_US - (LEASE + 60000) * 1000 then return finish('young') end
local h = hold ~= '' and get_hold(hold)
local state = 'waiting'
if h and h[H_ENTRY] == id then
  if h[H_STATE] == 'offered' then state = 'offered' end
  if h[H_STATE] == 'provisional' or h[H_STATE] == 'held' then state = 'holding' end
end
local e = { state, num(3), person, arg(5), 1, hold, num(7), num(9), 0, 0, 0, S.epoch }
if arg(12) ~= '' then e[E_LANGUAGE] = arg(12) end
if num(5) > S.stamp then set('stamp', num(5)) end
local known = redis.call('HGET', K_PEOPLE, person)
local other = known and get_entry(known)
put_entry(id, e)
ledger('repair', 'entry', e[E_UNITS], id, { person = person, actor = arg(8), reason = 'its record was lost' })
if other and entry_live(other) and state == 'holding' then
  e[E_LEAVING] = 1 -- it ends with its hold
  put_entry(id, e)
elseif other and entry_live(other) then
  if state == 'offered' then give_back(hold, h, 'released', 'release', 'reconcile', arg(8)) end
  end_entry(id, 'removed', true)
else
  redis.call('HSET', K_PEOPLE, person, id)
  local to = turned(e) and K_PARKED or K_LINE
  if state == 'waiting' then redis.call('ZADD', to, e[E_ARRIVAL], id) end
end
if h and h[H_ENTRY] == id and h[H_STATE] == 'sold' then
  end_entry(id, 'bought', true)
elseif arg(10) == '1' and state ~= 'holding' then
  end_entry(id, 'left', true)
elseif arg(10) == '1' then
  e[E_LEAVING] = 1
  put_entry(id, e)
elseif arg(11) == '1' and h and state == 'waiting' and entry_live(e) then
  outbox_add('e:' .. id) -- how its hold ended
end
return finish('ok')

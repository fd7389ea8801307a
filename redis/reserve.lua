-- reserve: takes units under a lease.
-- ARGV +1 hold id, +2 units, +3 person, +4 "1" for a press of the offer with
-- this id, +5 actor, +6 the lines of the cart whose first line this is, or "".
-- Repeat: provisional → lease renewed; swept → tried afresh; anything else → as
-- it is ("existing"). A press never makes a record.
-- Answers {verdict, wake, ms left, ms now, waiting, record}.
local id, units, press = arg(1), num(2), arg(4) == '1'
if sweep() then return finish_hold('again', nil) end
local h = get_hold(id)
local state = h and h[H_STATE]
if state == 'provisional' then
  h[H_DEADLINE] = NOW + LEASE
  put_hold(id, h)
  redis.call('ZADD', K_LEASES, h[H_DEADLINE], id)
  return finish_hold('ok', h)
end
if press and not h then return finish_hold('unknown', nil) end
if press and state == 'offered' then
  add('offered', -h[H_UNITS])
  add('held', h[H_UNITS])
  h[H_STATE] = 'provisional'
  h[H_UNTIL] = h[H_DEADLINE]
  h[H_DEADLINE] = NOW + LEASE
  put_hold(id, h)
  redis.call('ZADD', K_LEASES, h[H_DEADLINE], id)
  local e = get_entry(h[H_ENTRY])
  if e then
    e[E_STATE] = 'holding'
    put_entry(h[H_ENTRY], e)
  end
  hold_line('reserve', 'press', id, h, arg(5))
  return finish_hold('ok', h)
end
if h and (state ~= 'swept' or press) then return finish_hold('existing', h) end
-- With no limit each of the line takes a unit at least.
if line_first() and (S.limit > 0 or in_line() < available()) then return finish_hold('again', nil) end

local function refuse(verdict, people) return finish(verdict, 0, NOW, people or 0, '') end
local person = arg(3)
if S.paused == 1 then return refuse('paused') end
if ENDED then return refuse('sale-ended') end
if room(person) < units then return refuse('limit-reached') end
if open_to_all() < units then
  return refuse((S.offered > 0 or someone_eligible()) and 'reserved-for-line' or 'sold-out', waiting())
end
h = afresh(h, new_hold('provisional', units, person, '', S.gen, NOW + LEASE, arg(6)))
add('held', units)
count(person, units)
put_hold(id, h)
redis.call('ZADD', K_LEASES, h[H_DEADLINE], id)
hold_line('reserve', 'walk-in', id, h, arg(5))
return finish_hold('ok', h)

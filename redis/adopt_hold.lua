-- adopt (hold): an owner knows of it; provisional → held.
-- ARGV +1 hold id, +2 ms to hold for, +3 "1" by the Hold workflow, +4 units,
-- +5 person, +6 ms of the extension or 0, +7 amount, +8 currency, +9 the lines of
-- the cart whose first line this is, or "".
-- A held hold stays as it is, and only its version rises when it is old enough for
-- repair (gone); the first extension moves its deadline, and the amount
-- that was named last is kept. Swept or
-- unknown: "gone" for the door; for the workflow tried afresh, and without a
-- unit the record ends refused. A lease that gave its offer back is pressed
-- again by its workflow. Sold or ended: "existing". "again" before a refusal that a
-- bound would have made.
-- Answers {verdict, wake, ms left, ms now, 0, record}.
if SHUT then return SHUT end
local id, by_workflow = arg(1), arg(3) == '1'
local more = sweep()
local h = touch_hold(id)
local state = h and h[H_STATE]
if not h or state == 'swept' or state == 'offered' then
  if not by_workflow then return finish_hold('gone', nil) end
  if state == 'offered' then
    add('offered', -h[H_UNITS])
    h[H_UNTIL] = h[H_DEADLINE]
    local e = get_entry(h[H_ENTRY])
    if e then
      e[E_STATE] = 'holding'
      put_entry(h[H_ENTRY], e)
    end
  else
    if more or line_first() then return finish_hold('again', nil) end
    local units = num(4)
    local taken = open_to_all() >= units and room(arg(5)) >= units
    h = afresh(h, new_hold(taken and 'provisional' or 'refused', units, arg(5), '', S.gen, NOW, arg(9)))
    if not taken then
      h[H_ENDED] = NOW
      put_hold(id, h)
      purge_later('h:' .. id, KEEP)
      hold_line('adopt', 'refused', id, h, 'hold')
      return finish_hold('sold-out', h)
    end
  end
  add('held', h[H_UNITS])
  if state ~= 'offered' then count(h[H_PERSON], h[H_UNITS]) end
  hold_line('reserve', state == 'offered' and 'press' or 'afresh', id, h, 'hold')
  h[H_STATE] = 'provisional'
  state = 'provisional'
end
if state == 'provisional' then
  redis.call('ZREM', K_LEASES, id)
  h[H_STATE] = 'held'
  h[H_DEADLINE] = NOW + num(2)
  put_hold(id, h)
  hold_line('adopt', 'held', id, h, by_workflow and 'hold' or 'door')
elseif state ~= 'held' then
  return finish_hold('existing', h)
end
local extends = num(6) > 0 and h[H_EXTENDED] == 0
if arg(8) ~= '' then
  h[H_AMOUNT] = arg(7)
  h[H_CURRENCY] = arg(8)
end
if extends then
  h[H_EXTENDED] = 1
  h[H_DEADLINE] = h[H_DEADLINE] + num(6)
end
-- Who looked for the owner of an old hold just before this one came must not end it.
local late = h[H_CREATED] <= NOW - LEASE - 60000
if extends or arg(8) ~= '' or late then put_hold(id, h) end
if extends then hold_line('adopt', 'extended', id, h, 'hold', { amount = arg(7), currency = arg(8) }) end
return finish_hold('ok', h)

-- leave: ends an entry.
-- ARGV +1 entry id, +2 the end (left, expired, opted_out, unreachable, removed),
-- +3 actor, +4 "1" when its workflow asks and needs no word.
-- An offer ends with its entry. A hold already pressed runs on, and the entry
-- ends as left when the hold does without a sale. expired ends only a waiting
-- entry. A repeat answers the entry as it is. {verdict, wake, position, 0, record}
if SHUT then return SHUT end
local id, state = arg(1), arg(2)
sweep()
local e = get_entry(id)
if not e then return finish_entry('unknown', id) end
local tell = arg(4) ~= '1'
if e[E_STATE] == 'waiting' then
  end_entry(id, state, tell)
  ledger('leave', state, e[E_UNITS], id, { person = e[E_PERSON], actor = arg(3) })
elseif e[E_STATE] == 'offered' and state ~= 'expired' then
  local h = get_hold(e[E_HOLD])
  give_back(e[E_HOLD], h, 'released', 'release', 'left', arg(3))
  end_entry(id, state, tell)
  ledger('leave', state, e[E_UNITS], id, { person = e[E_PERSON], actor = arg(3) })
elseif e[E_STATE] == 'holding' and state ~= 'expired' and e[E_LEAVING] == 0 then
  e[E_LEAVING] = 1
  put_entry(id, e)
end
return finish_entry('ok', id)

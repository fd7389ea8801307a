-- join: a place at the end of the line.
-- ARGV +1 entry id, +2 person, +3 units, +4 sealed input, +5 ms until its start
-- is due in the outbox (the door starts it sooner itself), +6 the language of its
-- pages or "".
-- Answers {verdict, wake, position, backlog, record, entry id, created}. A
-- person with a live entry gets that one: nothing changes.
if SHUT then return SHUT end
local id, person = arg(1), arg(2)
sweep()
local live = redis.call('HGET', K_PEOPLE, person)
local e = get_entry(live or id)
local created = 0
if not e then
  if ENDED then return finish_entry('sale-ended', id) end
  local arrival = stamp()
  e = { 'waiting', num(3), person, int(arrival), 0, '', 0, 0, 0, 0, 0, S.epoch }
  if arg(6) ~= '' then e[E_LANGUAGE] = arg(6) end
  put_entry(id, e)
  redis.call('HSET', K_PEOPLE, person, id)
  redis.call('ZADD', K_FRESH, int(arrival), id)
  redis.call('ZADD', K_OUTBOX, int(arrival + num(5) * 1000), 's:' .. id)
  redis.call('HSET', K_PARCELS, 's:' .. id, arg(4))
  ledger('join', 'waiting', num(3), id, { person = person, actor = 'shopper' })
  created = 1
end
local out = finish_entry('ok', live or id, redis.call('ZCARD', K_FRESH))
out[#out + 1] = live or id
out[#out + 1] = created
return out

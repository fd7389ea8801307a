-- repair (place): puts what points at one record right, by the record alone, so
-- that it needs no guard.
-- ARGV +1 who rebuilds (repairing.lua), "" for an open SKU,
-- +2 hold or entry id, +3 actor, +4 "1" for an offer that its entry's workflow does
-- not know.
-- Of an entry: its place in the line, the name of its person's live entry, its start
-- in the outbox. Of a hold: its lease, and an offer's place in the outbox.
-- Answers {verdict, wake}: ok; existing (all was right).
local REBUILDS = rebuilds(arg(1))
if SHUT and not REBUILDS then return SHUT end
if REBUILDS then settled = true else sweep() end
local id, wrong = arg(2), {}
local function place(to, name, score)
  local is = redis.call('ZSCORE', to, id)
  if score and (not is or tonumber(is) ~= tonumber(score)) then
    redis.call('ZADD', to, score, id)
    wrong[#wrong + 1] = 'lost from ' .. name
  elseif is and not score then
    redis.call('ZREM', to, id)
    wrong[#wrong + 1] = 'astray in ' .. name
  end
end
if string.sub(id, 1, 5) == 'hold_' then
  local h = get_hold(id)
  place(K_LEASES, 'leases', h and h[H_STATE] == 'provisional' and int(h[H_DEADLINE]))
  if arg(4) == '1' and h and h[H_STATE] == 'offered' and not redis.call('ZSCORE', K_OFFERS, 'o:' .. id) then
    outbox_add('o:' .. id)
    wrong[#wrong + 1] = 'lost from offers'
  end
else
  local e = get_entry(id)
  local live = e and entry_live(e)
  local want
  if live and e[E_STATE] == 'waiting' then
    local line, parked = redis.call('ZSCORE', K_LINE, id), redis.call('ZSCORE', K_PARKED, id)
    local limited, back = redis.call('ZSCORE', K_LIMITED, id), redis.call('ZSCORE', K_BACK, id)
    if e[E_ACK] == 0 then
      want = K_FRESH
    elseif limited and not line and not back and not parked then
      want = K_LIMITED
    elseif parked and (turned(e) or not line and not back and not limited) then
      want = K_PARKED
    elseif back and not line then
      want = K_BACK
    elseif line or limited then
      want = K_LINE
    else
      want = turned(e) and K_PARKED or K_LINE
    end
  end
  place(K_LINE, 'line', want == K_LINE and e[E_ARRIVAL])
  place(K_BACK, 'back', want == K_BACK and e[E_ARRIVAL])
  place(K_FRESH, 'fresh', want == K_FRESH and e[E_ARRIVAL])
  place(K_PARKED, 'parked', want == K_PARKED and e[E_ARRIVAL])
  place(K_LIMITED, 'limited', want == K_LIMITED and e[E_ARRIVAL])
  local known = e and redis.call('HGET', K_PEOPLE, e[E_PERSON])
  if live and known ~= id then
    local other = known and get_entry(known)
    if not (other and entry_live(other)) then
      redis.call('HSET', K_PEOPLE, e[E_PERSON], id)
      wrong[#wrong + 1] = 'lost from people'
    end
  elseif e and not live and known == id then
    redis.call('HDEL', K_PEOPLE, e[E_PERSON])
    wrong[#wrong + 1] = 'astray in people'
  end
  if live and e[E_ACK] == 0 and not redis.call('ZSCORE', K_OUTBOX, 's:' .. id) and redis.call('HEXISTS', K_PARCELS, 's:' .. id) == 1 then
    outbox_add('s:' .. id)
    wrong[#wrong + 1] = 'lost from outbox'
  end
end
if #wrong == 0 then return finish('existing') end
ledger('repair', 'place', 0, id, { actor = arg(3), reason = table.concat(wrong, ', ') })
return finish('ok')

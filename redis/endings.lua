-- What verbs that change something share: records and outbox, and the endings of
-- holds and entries.
read_stock({ 'received', 'corrected', 'returned', 'stamp', 'quiet', 'level' })

local function marked(h, ref)
  if h[H_REFUNDED] == 0 then return false end
  for _, m in ipairs(h[H_REFUNDED]) do
    if m == ref then return true end
  end
  return false
end
local function mark(h, ref)
  if h[H_REFUNDED] == 0 then h[H_REFUNDED] = {} end
  table.insert(h[H_REFUNDED], ref)
end
local function put_entry(id, e)
  seen()
  e[E_VERSION] = e[E_VERSION] + 1
  redis.call('HSET', K_ENTRIES, id, cjson.encode(e))
end
local function entry_live(e)
  return e[E_STATE] == 'waiting' or e[E_STATE] == 'offered' or e[E_STATE] == 'holding'
end
local function purge_later(member, keep)
  redis.call('ZADD', K_PURGE, NOW + keep, member)
end

-- A stamp is unique, grows strictly and is the time in microseconds.
local function stamp()
  set('stamp', math.max(S.stamp + 1, NOW_US))
  return S.stamp
end
-- Offers have an outbox of their own, which a paused SKU leaves alone: however
-- many wait in it, no call walks past them.
local function outbox_of(member) return string.sub(member, 1, 1) == 'o' and K_OFFERS or K_OUTBOX end
local function outbox_add(member)
  local to = outbox_of(member)
  redis.call('ZADD', to, int(stamp()), member)
end
local function outbox_drop(member)
  local from = outbox_of(member)
  redis.call('ZREM', from, member)
  redis.call('HDEL', K_PARCELS, member, '#' .. member)
end
local function outbox_due() return int(math.max(NOW_US, S.stamp)) end

-- Who is passed over keeps their place. Who missed a turn is parked, and a new
-- generation brings them back. Who was met at the limit is limited: only something
-- of theirs that ends, or another limit, brings them back. So nobody is met twice
-- for nothing, and however often stock comes, the line gets to its end.
local function move(id, from, to, arrival)
  redis.call('ZREM', from, id)
  redis.call('ZADD', to, arrival, id)
end
local function out_of_line(id)
  for _, from in ipairs({ K_LINE, K_BACK, K_FRESH, K_PARKED, K_LIMITED }) do redis.call('ZREM', from, id) end
end

-- A claim or sale of a person came or went. One who was at the limit is looked at
-- again.
local function count(person, delta)
  if redis.call('HINCRBY', K_TALLY, person, delta) <= 0 then redis.call('HDEL', K_TALLY, person) end
  if delta > 0 then return end
  local id = redis.call('HGET', K_PEOPLE, person)
  local arrival = id and redis.call('ZSCORE', K_LIMITED, id)
  if arrival then move(id, K_LIMITED, K_LINE, arrival) end
end

-- tell: the entry's workflow does not know yet and must learn it. One that has
-- not acknowledged learns it when it does.
local function end_entry(id, state, tell)
  local e = id ~= '' and get_entry(id)
  if not e or not entry_live(e) then return end
  out_of_line(id)
  e[E_STATE] = state
  e[E_ENDED] = NOW
  put_entry(id, e)
  if redis.call('HGET', K_PEOPLE, e[E_PERSON]) == id then redis.call('HDEL', K_PEOPLE, e[E_PERSON]) end
  outbox_drop('s:' .. id)
  if tell and e[E_ACK] == 1 then outbox_add('e:' .. id) end
  purge_later('n:' .. id, KEEP)
end

-- A turn was missed: the entry keeps its place for the next generation, or has
-- missed too many.
local function miss_turn(id, tell)
  local e = id ~= '' and get_entry(id)
  if not e or not entry_live(e) then return end
  if e[E_LEAVING] == 1 then return end_entry(id, 'left', tell) end
  if e[E_MISSED] >= missed_keep() then return end_entry(id, 'lapsed', tell) end
  e[E_MISSED] = e[E_MISSED] + 1
  e[E_STATE] = 'waiting'
  put_entry(id, e)
  redis.call('ZADD', K_PARKED, e[E_ARRIVAL], id)
  if tell then outbox_add('e:' .. id) end
end

-- Who missed a turn of this generation gets no second one in it.
local function turned(e) return e[E_HOLD] ~= '' and e[E_GEN] == S.gen end

-- The turn was not missed: nobody was told of it. The entry keeps its place and what
-- it may miss, and waits for the next generation, or in a newer one than the offer's
-- for its turn in that.
local function keep_turn(id)
  local e = id ~= '' and get_entry(id)
  if not e or not entry_live(e) then return end
  e[E_STATE] = 'waiting'
  put_entry(id, e)
  local to = turned(e) and K_PARKED or K_LINE
  redis.call('ZADD', to, e[E_ARRIVAL], id)
end

-- Ends a live hold without a sale: its units are free. An offer that nobody has
-- pressed is withdrawn.
local function give_back(id, h, state, verb, reason, actor)
  local offered = h[H_STATE] == 'offered'
  if offered and verb == 'release' then verb = 'withdraw' end
  add(offered and 'offered' or 'held', -h[H_UNITS])
  redis.call('ZREM', K_LEASES, id)
  outbox_drop('o:' .. id)
  h[H_STATE] = state
  h[H_ENDED] = NOW
  h[H_REASON] = reason
  put_hold(id, h)
  purge_later('h:' .. id, KEEP)
  count(h[H_PERSON], -h[H_UNITS])
  hold_line(verb, state, id, h, actor, { reason = reason })
end

-- A lease that ended was never promised. A walk-in's hold is swept, one that
-- came from an offer is that offer again.
local function end_lease(id, h)
  redis.call('ZREM', K_LEASES, id)
  add('held', -h[H_UNITS])
  if h[H_ENTRY] == '' then
    h[H_STATE] = 'swept'
    h[H_ENDED] = NOW
    count(h[H_PERSON], -h[H_UNITS])
    purge_later('h:' .. id, KEEP)
  else
    add('offered', h[H_UNITS])
    h[H_STATE] = 'offered'
    h[H_DEADLINE] = h[H_UNTIL]
    if h[H_BACK] == 0 then
      h[H_BACK] = 1
      h[H_DEADLINE] = math.max(h[H_UNTIL], NOW + BACK_MS)
    end
  end
  put_hold(id, h)
  hold_line('sweep', h[H_STATE], id, h, 'lease')
  local e = h[H_ENTRY] ~= '' and get_entry(h[H_ENTRY])
  if not e then return end
  if e[E_LEAVING] == 1 then
    give_back(id, h, 'released', 'release', 'left', 'lease')
    end_entry(h[H_ENTRY], 'left', true)
  else
    e[E_STATE] = 'offered'
    put_entry(h[H_ENTRY], e)
  end
end
-- spent is how much of a call's share is used up: leases swept, and offers made.
local spent = 0
local function sweep()
  local due = redis.call('ZRANGEBYSCORE', K_LEASES, '-inf', NOW, 'LIMIT', 0, SWEEP_BOUND + 1)
  for i = 1, math.min(#due, SWEEP_BOUND) do
    end_lease(due[i], get_hold(due[i]))
    spent = spent + 1
  end
  return #due > SWEEP_BOUND
end
-- The record of a verb, its own lease ended first when that is due.
local function touch_hold(id)
  local h = get_hold(id)
  if h and h[H_STATE] == 'provisional' and h[H_DEADLINE] <= NOW then end_lease(id, h) end
  return h
end


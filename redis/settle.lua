-- What verbs that change something share: the line, the endings, and settle.
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

-- ripe is the latest arrival that was acknowledged at least a lease ago, green
-- the latest one since green_at.
local function ripen()
  if S.green > 0 and NOW >= S.green_at + LEASE then
    set('ripe', math.max(S.ripe, S.green))
    set('green', 0)
  end
end
local function acknowledged(arrival)
  ripen()
  if S.green == 0 then set('green_at', NOW) end
  if arrival > S.green then set('green', arrival) end
end

-- Who is passed over keeps their place. Who missed a turn is parked, and a new
-- generation brings them back. Who was met at the limit is limited: only something
-- of theirs that ends, or another limit, brings them back. So nobody is met twice
-- for nothing, and however often stock comes, the line gets to its end.
local function move(id, from, to, arrival)
  redis.call('ZREM', from, id)
  redis.call('ZADD', to, arrival, id)
end
-- After a change of the limit the line stands until all who were at the old one are
-- in it again, in bites.
local function look_again()
  if S.look == 0 then return end
  local scores, ids = {}, {}
  local some = redis.call('ZRANGE', K_LIMITED, 0, LOOK_BOUND - 1, 'WITHSCORES')
  for i = 1, #some, 2 do
    ids[#ids + 1] = some[i]
    scores[i], scores[i + 1] = some[i + 1], some[i]
  end
  if #ids > 0 then
    redis.call('ZADD', K_LINE, unpack(scores))
    redis.call('ZREM', K_LIMITED, unpack(ids))
  end
  if redis.call('EXISTS', K_LIMITED) == 0 then set('look', 0) end
end
-- The smaller of the two sets goes into the greater: a few who missed their turn
-- must not cost a walk over a long line.
local function raise_generation()
  add('gen', 1)
  local parked, line = redis.call('ZCARD', K_PARKED), redis.call('ZCARD', K_LINE)
  if parked == 0 then return end
  local from, to = K_PARKED, K_LINE
  if line < parked then from, to = K_LINE, K_PARKED end
  for first = 0, math.min(parked, line) - 1, 1000 do
    local scores = {}
    local some = redis.call('ZRANGE', from, first, first + 999, 'WITHSCORES')
    for i = 1, #some, 2 do
      scores[i], scores[i + 1] = some[i + 1], some[i]
    end
    redis.call('ZADD', to, unpack(scores))
  end
  if from == K_PARKED then
    redis.call('DEL', K_PARKED)
  else
    redis.call('RENAME', K_PARKED, K_LINE)
  end
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
  redis.call('ZREM', K_LINE, id)
  redis.call('ZREM', K_FRESH, id)
  redis.call('ZREM', K_PARKED, id)
  redis.call('ZREM', K_LIMITED, id)
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
local function sweep()
  local due = redis.call('ZRANGEBYSCORE', K_LEASES, '-inf', NOW, 'LIMIT', 0, SWEEP_BOUND + 1)
  for i = 1, math.min(#due, SWEEP_BOUND) do
    end_lease(due[i], get_hold(due[i]))
  end
  return #due > SWEEP_BOUND
end
-- The record of a verb, its own lease ended first when that is due.
local function touch_hold(id)
  local h = get_hold(id)
  if h and h[H_STATE] == 'provisional' and h[H_DEADLINE] <= NOW then end_lease(id, h) end
  return h
end

-- 8 characters of the SKU number and 88 bits of a hash as 18 of base32.
local ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
local function offer_id(entry)
  local hex = redis.sha1hex(NONCE .. '\n' .. entry .. '\n' .. int(S.gen))
  local out = { 'hold_', NUMBER }
  local function digits(value, count)
    for shift = count - 1, 0, -1 do
      local d = math.floor(value / 32 ^ shift) % 32
      out[#out + 1] = string.sub(ALPHABET, d + 1, d + 1)
    end
  end
  for i = 1, 16, 5 do digits(tonumber(string.sub(hex, i, i + 4), 16), 4) end
  digits(tonumber(string.sub(hex, 21, 22), 16) * 4, 2)
  return table.concat(out)
end

local function make_offer(id, e, max_units)
  local units = math.min(e[E_UNITS], max_units)
  local hold = offer_id(id)
  local h = new_hold('offered', units, e[E_PERSON], id, S.gen, NOW + max_age())
  h[H_OFFERED] = NOW
  add('offered', units)
  count(e[E_PERSON], units)
  put_hold(hold, h)
  redis.call('ZREM', K_LINE, id)
  e[E_STATE] = 'offered'
  e[E_HOLD] = hold
  e[E_GEN] = S.gen
  put_entry(id, e)
  outbox_add('o:' .. hold)
  hold_line('offer', 'offered', hold, h, 'settle')
end

-- Turns free units into offers for the heads of the line. Answers whether more
-- is to be done: the bound was hit, or the line stops at someone's lease.
local settled, bitten = nil, false
local function settle_now()
  ripen()
  look_again()
  if S.look == 1 then
    bitten = available() > 0
    return true
  end
  if S.paused == 1 or ENDED or available() <= 0 then return false end
  local heads = redis.call('ZRANGE', K_LINE, 0, OFFER_BOUND - 1, 'WITHSCORES')
  local stop = first_fresh()
  for i = 1, #heads, 2 do
    if available() <= 0 then return false end
    if stop and stop < tonumber(heads[i + 1]) then return true end
    local e = get_entry(heads[i])
    local most = math.min(available(), room(e[E_PERSON]))
    if most <= 0 then
      move(heads[i], K_LINE, K_LIMITED, heads[i + 1])
    else
      make_offer(heads[i], e, most)
    end
  end
  bitten = available() > 0 and #heads == 2 * OFFER_BOUND
  return bitten or (available() > 0 and stop ~= nil)
end
-- Once in a call, after the verb's own changes.
local function settle()
  if settled == nil then settled = settle_now() end
  return settled
end
-- Before units are taken that are open to all: what this call's sweep has freed is
-- the line's first, and what the line does not take is anybody's. After it a verb
-- must free nothing that somebody waits for. Answers whether the bound was met: nothing can then
-- be refused for good.
local function line_first()
  settle()
  return bitten
end

local function purge()
  local due = redis.call('ZRANGEBYSCORE', K_PURGE, '-inf', NOW, 'LIMIT', 0, PURGE_BOUND)
  for _, member in ipairs(due) do
    local kind, id = string.sub(member, 1, 1), string.sub(member, 3)
    if kind == 'h' then
      local h = get_hold(id)
      -- A swept hold may live again, and a sale is kept longer than its sweep.
      if h and h[H_ENDED] > 0 and h[H_ENDED] + (h[H_STATE] == 'sold' and KEEP_SALE or KEEP) <= NOW then
        -- A limit counts the sales that are on record.
        if h[H_STATE] == 'sold' then count(h[H_PERSON], h[H_RETURNED] - h[H_UNITS]) end
        redis.call('HDEL', K_HOLDS, id)
      end
    elseif kind == 'n' then
      redis.call('HDEL', K_ENTRIES, id)
      outbox_drop('e:' .. id)
    else
      redis.call('HDEL', K_EVENTS, id)
    end
    redis.call('ZREM', K_PURGE, member)
  end
end

-- Offers of a paused SKU are not due: they stay until it resumes.
local function something_due()
  local function due(from) return redis.call('ZRANGEBYSCORE', from, '-inf', outbox_due(), 'LIMIT', 0, 1)[1] ~= nil end
  return due(K_OUTBOX) or S.paused == 0 and due(K_OFFERS)
end

-- Every verb that writes ends here. The caller wakes the SKU's Stock when the
-- outbox has something due or settle has more to do, at most once a second.
local function finish(verdict, ...)
  local more = settle()
  purge()
  local wake = 0
  if S.woke + 1000 <= NOW then
    if more or something_due() then
      wake = 1
      set('woke', NOW)
    end
  end
  flush()
  return { verdict, wake, ... }
end

local function counters()
  local free = available()
  return {
    NOW, int(S.on_hand), int(S.held), int(S.offered), int(open_to_all()), int(S.sold), int(S.returned),
    int(S.received), int(S.corrected), waiting(), int(math.max(0, -free)), int(S.gen), int(S.epoch),
    S.paused, ENDED and 1 or 0, tonumber(redis.call('HGET', K_STOCK, 'version') or '0'), S.limit,
    (someone_eligible() or S.offered > 0) and 1 or 0, S.level,
  }
end

-- {verdict, wake, ms left, ms now, waiting, record}
local function finish_hold(verdict, h, extra)
  local left = h and math.max(0, h[H_DEADLINE] - NOW) or 0
  return finish(verdict, left, NOW, extra or 0, h and cjson.encode(h) or '')
end

-- Position from 1 in the line, 0 outside it; a parked entry keeps its place.
local function position(id, e)
  if e[E_STATE] ~= 'waiting' then return 0 end
  local before = '(' .. e[E_ARRIVAL]
  return redis.call('ZCOUNT', K_LINE, '-inf', before) + redis.call('ZCOUNT', K_FRESH, '-inf', before) +
    redis.call('ZCOUNT', K_PARKED, '-inf', before) + redis.call('ZCOUNT', K_LIMITED, '-inf', before) + 1
end

-- {verdict, wake, position, extra, record}, all as they are after settling.
local function finish_entry(verdict, id, extra)
  settle()
  local e = get_entry(id)
  return finish(verdict, e and position(id, e) or 0, extra or 0, e and cjson.encode(e) or '')
end

-- No ending for a while after a closed gate opened: our outage costs nobody
-- their place.
local function early(deadline)
  return math.max(deadline, S.quiet) - NOW
end

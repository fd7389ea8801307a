-- Shared by every verb. KEYS are the twelve keys of one SKU in the order of
-- keys.go. ARGV: 1 nonce (16 fresh bytes), 2 SKU number, 3 lease ms, 4 retention
-- of ended records ms, 5 retention of sales ms, 6 "1" when the fence is on,
-- 7 the time in microseconds (tests only, else 0), 8 greatest age of an offer
-- ms; a verb's own follow.
--
-- A script reads and checks everything first and only then writes: Redis does
-- not roll back. Every answer begins {verdict, wake, ...}; a closed gate answers
-- {"closed", replication id, 1 when the stock key is missing}.
local K_STOCK, K_HOLDS, K_ENTRIES, K_PEOPLE = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local K_LINE, K_FRESH, K_LEASES, K_OUTBOX = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local K_PARCELS, K_EVENTS, K_PURGE, K_LEDGER = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local NONCE, NUMBER = ARGV[1], ARGV[2]
local LEASE, KEEP, KEEP_SALE = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local FENCED, MAX_AGE = ARGV[6] == '1', tonumber(ARGV[8])

local SWEEP_BOUND, OFFER_BOUND, PURGE_BOUND = 64, 32, 4
local BACK_MS = 120000 -- an offer that comes back from a dead press can be pressed again for this long

-- One reading of the only clock. Microseconds stay below 2^53.
local NOW_US = tonumber(ARGV[7])
if NOW_US == 0 then
  local t = redis.call('TIME')
  NOW_US = tonumber(t[1]) * 1000000 + tonumber(t[2])
end
local NOW = math.floor(NOW_US / 1000)

local function arg(i) return ARGV[8 + i] end
local function num(i) return tonumber(ARGV[8 + i]) end
local function int(x) return string.format('%.0f', x) end

-- Stock: read once, written once.
local FIELDS = {
  'fence', 'on_hand', 'held', 'offered', 'sold', 'received', 'corrected', 'returned', 'gen',
  'epoch', 'n', 'stamp', 'paused', 'ended', 'woke', 'quiet',
}
local S, changed, MISSING = {}, {}, false
do
  local v = redis.call('HMGET', K_STOCK, unpack(FIELDS))
  MISSING = not v[2]
  S.fence = v[1]
  for i = 2, #FIELDS do S[FIELDS[i]] = tonumber(v[i] or '0') end
end
local function set(field, value) S[field] = value; changed[field] = true end
local function add(field, delta) set(field, S[field] + delta) end
local function flush()
  local args = {}
  for field in pairs(changed) do
    args[#args + 1] = field
    args[#args + 1] = int(S[field])
  end
  if #args > 0 then redis.call('HSET', K_STOCK, unpack(args)) end
  changed = {}
end

local function replication_id()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- The fence: the replication id changes whenever this server may have lost
-- acknowledged writes.
local SHUT = nil
do
  local id = FENCED and replication_id() or ''
  if MISSING or (FENCED and S.fence ~= id) then SHUT = { 'closed', id, MISSING and 1 or 0 } end
end

-- Records are JSON arrays: short, and safe for any text in them.
local H_STATE, H_UNITS, H_PERSON, H_ENTRY, H_GEN, H_CREATED, H_DEADLINE, H_VERSION = 1, 2, 3, 4, 5, 6, 7, 8
local H_OFFERED, H_TOLD, H_SENT, H_UNTIL, H_BACK, H_EXTENDED = 9, 10, 11, 12, 13, 14
local H_AMOUNT, H_CURRENCY, H_ENDED, H_REASON, H_REF, H_REFUNDED = 15, 16, 17, 18, 19, 20
local E_STATE, E_UNITS, E_PERSON, E_ARRIVAL, E_ACK, E_HOLD = 1, 2, 3, 4, 5, 6
local E_GEN, E_MISSED, E_LEAVING, E_ENDED, E_VERSION, E_EPOCH = 7, 8, 9, 10, 11, 12

local function new_hold(state, units, person, entry, gen, deadline)
  return { state, units, person, entry, gen, NOW, deadline, 0, 0, 0, 0, 0, 0, 0, '', '', 0, '', '', 0 }
end
local function get_hold(id)
  local raw = redis.call('HGET', K_HOLDS, id)
  return raw and cjson.decode(raw)
end
local function put_hold(id, h)
  h[H_VERSION] = h[H_VERSION] + 1
  redis.call('HSET', K_HOLDS, id, cjson.encode(h))
end
local function get_entry(id)
  local raw = redis.call('HGET', K_ENTRIES, id)
  return raw and cjson.decode(raw)
end
local function put_entry(id, e)
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
local function outbox_add(member) redis.call('ZADD', K_OUTBOX, int(stamp()), member) end
local function outbox_drop(member)
  redis.call('ZREM', K_OUTBOX, member)
  redis.call('HDEL', K_PARCELS, member, '#' .. member)
end
local function outbox_due() return int(math.max(NOW_US, S.stamp)) end

-- One line for each movement, with the counters after it. All fields always in
-- the same order: the stream then stores their names once.
local function ledger(verb, kind, units, ref, o)
  add('n', 1)
  redis.call('XADD', K_LEDGER, '*', 't', NOW, 'e', S.epoch, 'n', int(S.n), 'v', verb, 'k', kind, 'u', units,
    'i', ref, 'p', o.person or '', 'a', o.actor or '', 'r', o.reason or '', 'g', S.gen, 'f', o.ref or '',
    'm', o.amount or '', 'c', o.currency or '', 'oh', int(S.on_hand), 'h', int(S.held), 'o', int(S.offered),
    's', int(S.sold))
end

local function available() return S.on_hand - S.held - S.offered end

-- The first entry that still has a lease to acknowledge: the line stops at it.
local function first_fresh()
  local f = redis.call('ZRANGEBYSCORE', K_FRESH, '(' .. int(NOW_US - LEASE * 1000), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return f[2] and tonumber(f[2])
end
local function waiting() return redis.call('ZCARD', K_LINE) + redis.call('ZCARD', K_FRESH) end
local function open_to_all()
  local free = available()
  if free <= 0 or S.paused == 1 or S.ended == 1 then return 0 end
  if redis.call('ZCARD', K_LINE) > 0 or first_fresh() then return 0 end
  return free
end

-- tell: the entry's workflow does not know yet and must learn it. One that has
-- not acknowledged learns it when it does.
local function end_entry(id, state, tell)
  local e = id ~= '' and get_entry(id)
  if not e or not entry_live(e) then return end
  redis.call('ZREM', K_LINE, id)
  redis.call('ZREM', K_FRESH, id)
  e[E_STATE] = state
  e[E_ENDED] = NOW
  put_entry(id, e)
  if redis.call('HGET', K_PEOPLE, e[E_PERSON]) == id then redis.call('HDEL', K_PEOPLE, e[E_PERSON]) end
  outbox_drop('s:' .. id)
  if tell and e[E_ACK] == 1 then outbox_add('e:' .. id) end
  purge_later('n:' .. id, KEEP)
end

-- Ends a live hold without a sale: its units are free.
local function give_back(id, h, state, verb, reason, actor)
  add(h[H_STATE] == 'offered' and 'offered' or 'held', -h[H_UNITS])
  redis.call('ZREM', K_LEASES, id)
  outbox_drop('o:' .. id)
  h[H_STATE] = state
  h[H_ENDED] = NOW
  h[H_REASON] = reason
  put_hold(id, h)
  purge_later('h:' .. id, KEEP)
  ledger(verb, state, h[H_UNITS], id, { person = h[H_PERSON], actor = actor, reason = reason })
end

-- A lease that ended was never promised. A walk-in's hold is swept, one that
-- came from an offer is that offer again.
local function end_lease(id, h)
  redis.call('ZREM', K_LEASES, id)
  add('held', -h[H_UNITS])
  if h[H_ENTRY] == '' then
    h[H_STATE] = 'swept'
    h[H_ENDED] = NOW
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
  ledger('sweep', h[H_STATE], h[H_UNITS], id, { person = h[H_PERSON], actor = 'lease' })
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
  local h = new_hold('offered', units, e[E_PERSON], id, S.gen, NOW + MAX_AGE)
  h[H_OFFERED] = NOW
  add('offered', units)
  put_hold(hold, h)
  redis.call('ZREM', K_LINE, id)
  e[E_STATE] = 'offered'
  e[E_HOLD] = hold
  e[E_GEN] = S.gen
  put_entry(id, e)
  outbox_add('o:' .. hold)
  ledger('offer', 'offered', units, hold, { person = e[E_PERSON], actor = 'settle', reason = id })
end

-- Turns free units into offers for the heads of the line. Answers whether more
-- is to be done: the bound was hit, or the line stops at someone's lease.
local settled = nil
local function settle_now()
  if S.paused == 1 or S.ended == 1 or available() <= 0 then return false end
  local heads = redis.call('ZRANGE', K_LINE, 0, OFFER_BOUND - 1, 'WITHSCORES')
  local stop = first_fresh()
  for i = 1, #heads, 2 do
    if available() <= 0 then return false end
    if stop and stop < tonumber(heads[i + 1]) then return true end
    make_offer(heads[i], get_entry(heads[i]), available())
  end
  return available() > 0 and (#heads == 2 * OFFER_BOUND or stop ~= nil)
end
-- Once in a call, after the verb's own changes.
local function settle()
  if settled == nil then settled = settle_now() end
  return settled
end

local function purge()
  local due = redis.call('ZRANGEBYSCORE', K_PURGE, '-inf', NOW, 'LIMIT', 0, PURGE_BOUND)
  for _, member in ipairs(due) do
    local kind, id = string.sub(member, 1, 1), string.sub(member, 3)
    if kind == 'h' then
      local h = get_hold(id)
      -- A swept hold may live again, and a sale is kept longer than its sweep.
      if h and h[H_ENDED] > 0 and h[H_ENDED] + (h[H_STATE] == 'sold' and KEEP_SALE or KEEP) <= NOW then
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

-- Every verb that writes ends here. The caller wakes the SKU's Stock when the
-- outbox has something due or settle has more to do, at most once a second.
local function finish(verdict, ...)
  local more = settle()
  purge()
  local wake = 0
  if S.woke + 1000 <= NOW then
    local due = redis.call('ZRANGEBYSCORE', K_OUTBOX, '-inf', outbox_due(), 'LIMIT', 0, 1)
    if more or due[1] then
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
    S.paused, S.ended, tonumber(redis.call('HGET', K_STOCK, 'version') or '0'),
  }
end

-- {verdict, wake, ms left, ms now, waiting, record}
local function finish_hold(verdict, h, extra)
  local left = h and math.max(0, h[H_DEADLINE] - NOW) or 0
  return finish(verdict, left, NOW, extra or 0, h and cjson.encode(h) or '')
end

-- Position from 1 in the line, 0 outside it. Both zsets are ordered by arrival.
local function position(id, e)
  if e[E_STATE] ~= 'waiting' then return 0 end
  local before = '(' .. e[E_ARRIVAL]
  return redis.call('ZCOUNT', K_LINE, '-inf', before) + redis.call('ZCOUNT', K_FRESH, '-inf', before) + 1
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

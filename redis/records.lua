-- What every verb that decides more than a plain refusal needs: the rest of the
-- stock, the records, the ledger, and who is eligible.
local K_ENTRIES, K_PEOPLE, K_PARCELS, K_EVENTS = KEYS[3], KEYS[4], KEYS[9], KEYS[10]
local K_PURGE = KEYS[11]
local NONCE, NUMBER, KEEP, KEEP_SALE = ARGV[1], ARGV[2], ARGV[4] + 0, ARGV[5] + 0
-- Unless the SKU has its own.
local function max_age() return tonumber(redis.call('HGET', K_STOCK, 'max_age') or ARGV[8]) end
local function missed_keep() return tonumber(redis.call('HGET', K_STOCK, 'missed_keep') or ARGV[9]) end

local SWEEP_BOUND, OFFER_BOUND, PURGE_BOUND = 16, 16, 4 -- a call that sweeps its fill makes hardly an offer
local LOOK_BOUND = 100 -- places moved from one set to another
local BACK_MS = 120000 -- an offer that comes back from a dead press can be pressed again for this long

local function arg(i) return ARGV[9 + i] end
local function num(i) return tonumber(ARGV[9 + i]) end

local function read_stock(names)
  local v = redis.call('HMGET', K_STOCK, unpack(names))
  for i, name in ipairs(names) do S[name] = tonumber(v[i] or 0) end
end
read_stock({ 'sold', 'gen', 'epoch', 'n', 'ripe', 'ahead' })
local changed = {}
local function set(field, value) S[field] = value; changed[field] = true end
local function add(field, delta) set(field, S[field] + delta) end
-- What was written at a time is written with that time.
local function seen() set('seen', NOW_US) end
if JUMPED then seen() end
local function flush()
  if next(changed) then
    seen()
    if S.ahead ~= AHEAD then set('ahead', AHEAD) end
  end
  local args = {}
  for field in pairs(changed) do
    args[#args + 1] = field
    args[#args + 1] = S[field]
  end
  if #args > 0 then redis.call('HSET', K_STOCK, unpack(args)) end
  changed = {}
end

-- Records are JSON arrays: short, and safe for any text in them.
local H_STATE, H_UNITS, H_PERSON, H_ENTRY, H_GEN, H_CREATED, H_DEADLINE, H_VERSION = 1, 2, 3, 4, 5, 6, 7, 8
local H_OFFERED, H_TOLD, H_SENT, H_UNTIL, H_BACK, H_EXTENDED = 9, 10, 11, 12, 13, 14
local H_AMOUNT, H_CURRENCY, H_ENDED, H_REASON, H_REF, H_REFUNDED = 15, 16, 17, 18, 19, 20
local H_RETURNED, H_RETAKEN = 21, 22 -- 23 is the cart, which no script reads
local E_STATE, E_UNITS, E_PERSON, E_ARRIVAL, E_ACK, E_HOLD = 1, 2, 3, 4, 5, 6
local E_GEN, E_MISSED, E_LEAVING, E_ENDED, E_VERSION, E_EPOCH = 7, 8, 9, 10, 11, 12
local E_LANGUAGE = 13 -- of its pages; most have none

local function new_hold(state, units, person, entry, gen, deadline, cart)
  return { state, units, person, entry, gen, NOW, deadline, 0, 0, 0, 0, 0, 0, 0, '', '', 0, '', '', 0, 0, 0, cart or '' }
end
-- A swept hold that lives again: what was refunded stays refunded.
local function afresh(old, h)
  if old then h[H_VERSION], h[H_REFUNDED] = old[H_VERSION], old[H_REFUNDED] end
  return h
end
local function get_hold(id)
  local raw = redis.call('HGET', K_HOLDS, id)
  return raw and cjson.decode(raw)
end
local function put_hold(id, h)
  seen()
  h[H_VERSION] = h[H_VERSION] + 1
  local record = cjson.encode(h)
  redis.call('HSET', K_HOLDS, id, record)
  return record
end

local function get_entry(id)
  local raw = redis.call('HGET', K_ENTRIES, id)
  return raw and cjson.decode(raw)
end

-- One line for each movement, with the counters after it. All fields always in
-- the same order: the stream then stores their names once.
local function ledger(verb, kind, units, ref, o)
  add('n', 1)
  redis.call('XADD', K_LEDGER, '*', 't', NOW, 'e', S.epoch, 'n', S.n, 'v', verb, 'k', kind, 'u', units,
    'i', ref, 'x', o.other or '', 'p', o.person or '', 'a', o.actor or '', 'r', o.reason or '', 'g', o.gen or S.gen,
    'f', o.ref or '', 'm', o.amount or '', 'c', o.currency or '', 'oh', S.on_hand, 'h', S.held,
    'o', S.offered, 's', S.sold)
end
-- A line about a hold carries its generation, its person and its entry.
local function hold_line(verb, kind, id, h, actor, o)
  o = o or {}
  o.person, o.gen, o.other, o.actor = h[H_PERSON], o.gen or h[H_GEN], o.other or h[H_ENTRY], actor
  ledger(verb, kind, o.units or h[H_UNITS], id, o)
end

local function available() return S.on_hand - S.held - S.offered end

-- The first entry whose acknowledgement the line waits for. It is waited for
-- during one lease; and longer, up to OUTAGE_MS, while nobody who joined later
-- has acknowledged a lease ago: then it is not this entry that is silent, it is
-- our workers, and their outage costs nobody a turn.
local OUTAGE_MS = 300000
local function passed_over_up_to()
  return math.min(NOW_US - LEASE * 1000, math.max(S.ripe, NOW_US - OUTAGE_MS * 1000))
end
local function first_fresh()
  if redis.call('ZCARD', K_FRESH) == 0 then return nil end
  local f = redis.call('ZRANGEBYSCORE', K_FRESH, '(' .. int(passed_over_up_to()), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return f[2] and tonumber(f[2])
end
-- Those who may be offered something stand in line and in back, which is what was
-- parked before the last restock. Both are in order of arrival; the turn is of the
-- earlier of the two heads.
local function in_line() return redis.call('ZCARD', K_LINE) + redis.call('ZCARD', K_BACK) end
local function waiting()
  return in_line() + redis.call('ZCARD', K_FRESH) + redis.call('ZCARD', K_PARKED) + redis.call('ZCARD', K_LIMITED)
end
local function heads(most)
  local found = {}
  for _, from in ipairs({ K_LINE, K_BACK }) do
    local some = redis.call('ZRANGE', from, 0, most - 1, 'WITHSCORES')
    for i = 1, #some, 2 do found[#found + 1] = { id = some[i], arrival = tonumber(some[i + 1]), from = from } end
  end
  if found[1] and found[1].from ~= found[#found].from then
    table.sort(found, function(a, b) return a.arrival < b.arrival end)
  end
  for i = #found, most + 1, -1 do found[i] = nil end
  return found
end

-- What a person has: live claims and sales that did not come back.
local function has(person) return tonumber(redis.call('HGET', K_TALLY, person) or '0') end
local function room(person) return S.limit == 0 and math.huge or S.limit - has(person) end

-- Who is at the limit is not eligible, also before settle has met them. Who was at
-- an old limit may be.
local function someone_eligible()
  if S.look == 1 then return true end
  if S.limit == 0 then return redis.call('EXISTS', K_LINE, K_BACK) > 0 or first_fresh() ~= nil end
  if first_fresh() then return true end
  local first = heads(OFFER_BOUND)
  for _, head in ipairs(first) do
    if room(get_entry(head.id)[E_PERSON]) > 0 then return true end
  end
  return #first == OFFER_BOUND
end
local function open_to_all()
  local free = available()
  if free <= 0 or S.paused == 1 or ENDED or someone_eligible() then return 0 end
  return free
end

-- Shared by every verb. KEYS are the fourteen keys of one SKU in the order of
-- keys.go. ARGV: 1 nonce (16 fresh bytes), 2 SKU number, 3 lease ms, 4 retention
-- of ended records ms, 5 retention of sales ms, 6 "1" when the fence is on,
-- 7 the time in microseconds (tests only, else 0), 8 greatest age of an offer ms,
-- 9 missed turns that a person may have; a verb's own follow.
--
-- A script reads and checks everything first and only then writes: Redis does
-- not roll back. Every answer begins {verdict, wake, ...}; a closed gate answers
-- {"closed", replication id, 1 when the stock key is missing}.
local K_STOCK, K_HOLDS, K_ENTRIES, K_PEOPLE = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local K_LINE, K_FRESH, K_LEASES, K_OUTBOX = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local K_PARCELS, K_EVENTS, K_PURGE, K_LEDGER = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local K_PARKED, K_TALLY = KEYS[13], KEYS[14]
local NONCE, NUMBER = ARGV[1], ARGV[2]
local LEASE, KEEP, KEEP_SALE = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local FENCED, MAX_AGE, MISSED_KEEP = ARGV[6] == '1', tonumber(ARGV[8]), tonumber(ARGV[9])

local SWEEP_BOUND, OFFER_BOUND, PURGE_BOUND = 64, 32, 4
local BACK_MS = 120000 -- an offer that comes back from a dead press can be pressed again for this long

-- One reading of the only clock. Microseconds stay below 2^53.
local NOW_US = tonumber(ARGV[7])
if NOW_US == 0 then
  local t = redis.call('TIME')
  NOW_US = tonumber(t[1]) * 1000000 + tonumber(t[2])
end
local NOW = math.floor(NOW_US / 1000)

local function arg(i) return ARGV[9 + i] end
local function num(i) return tonumber(ARGV[9 + i]) end
local function int(x) return string.format('%.0f', x) end

-- Stock: read once, written once.
local FIELDS = {
  'fence', 'on_hand', 'held', 'offered', 'sold', 'received', 'corrected', 'returned', 'gen',
  'epoch', 'n', 'stamp', 'paused', 'ends', 'woke', 'quiet', 'level', 'limit',
  'ripe', 'green', 'green_at',
}
local S, changed, MISSING = {}, {}, false
do
  local v = redis.call('HMGET', K_STOCK, unpack(FIELDS))
  MISSING = not v[2]
  S.fence = v[1]
  for i = 2, #FIELDS do S[FIELDS[i]] = tonumber(v[i] or '0') end
end
-- No new offers, walk-in holds or retakes any more; told offers and live holds
-- go on.
local ENDED = S.ends > 0 and NOW >= S.ends
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
local H_RETURNED, H_RETAKEN = 21, 22
local E_STATE, E_UNITS, E_PERSON, E_ARRIVAL, E_ACK, E_HOLD = 1, 2, 3, 4, 5, 6
local E_GEN, E_MISSED, E_LEAVING, E_ENDED, E_VERSION, E_EPOCH = 7, 8, 9, 10, 11, 12

local function new_hold(state, units, person, entry, gen, deadline)
  return { state, units, person, entry, gen, NOW, deadline, 0, 0, 0, 0, 0, 0, 0, '', '', 0, '', '', 0, 0, 0 }
end
local function get_hold(id)
  local raw = redis.call('HGET', K_HOLDS, id)
  return raw and cjson.decode(raw)
end
local function put_hold(id, h)
  h[H_VERSION] = h[H_VERSION] + 1
  redis.call('HSET', K_HOLDS, id, cjson.encode(h))
end
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

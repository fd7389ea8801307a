-- Shared by every verb: the clock, the stock and the fence. KEYS are the seventeen
-- keys of one SKU in the order of keys.go. ARGV: 1 nonce (16 fresh bytes), 2 SKU
-- number, 3 lease ms, 4 retention of ended records ms, 5 retention of sales ms,
-- 6 "1" when the fence is on, 7 what TIME reads in microseconds, or negated the
-- SKU's own time (tests only, else 0), 8 greatest age of an offer ms, 9 missed turns
-- that a person may have; a verb's own follow.
--
-- A script reads and checks everything first and only then writes: Redis does
-- not roll back. Every answer begins {verdict, wake, ...}; a closed gate answers
-- {"closed", replication id, 1 when the stock key is missing}, and a SKU in another
-- layout {"layout", its number, ours}.
--
-- A script is made anew at each call, and making its functions costs as much as
-- reading its keys. So what follows is in parts, and reserve decides the refusal
-- and the walk-in, which a stampede is made of, before it has made the rest:
-- prelude, refusal, walk_in, records, endings, settle, reserve. Any other verb is
-- prelude, records, endings, settle and its own file.
local K_STOCK, K_HOLDS, K_LINE, K_FRESH, K_LEASES = KEYS[1], KEYS[2], KEYS[5], KEYS[6], KEYS[7]
local K_OUTBOX, K_LEDGER, K_PARKED, K_TALLY, K_OFFERS = KEYS[8], KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local K_LIMITED, K_BACK = KEYS[16], KEYS[17]
local LEASE, FENCED = ARGV[3] + 0, ARGV[6] == '1'
local function int(x) return string.format('%.0f', x) end

-- Stock: read once, written once. What only changes ask for is read by records
-- and settle.
local S, MISSING
do
  local v = redis.call('HMGET', K_STOCK, 'fence', 'on_hand', 'held', 'offered', 'paused', 'ends', 'woke', 'limit',
    'green', 'green_at', 'seen', 'layout', 'look')
  MISSING = not v[2]
  S = {
    fence = v[1], on_hand = (v[2] or 0) + 0, held = (v[3] or 0) + 0, offered = (v[4] or 0) + 0, paused = (v[5] or 0) + 0,
    ends = (v[6] or 0) + 0, woke = (v[7] or 0) + 0, limit = (v[8] or 0) + 0, green = (v[9] or 0) + 0,
    green_at = (v[10] or 0) + 0, seen = (v[11] or 0) + 0, layout = (v[12] or 0) + 0, look = (v[13] or 0) + 0,
  }
end

-- One reading of the only clock, in microseconds, which stay below 2^53. Redis TIME
-- may be put back; a SKU's time is not, or what is due would wait for it, and a
-- lease with it. It goes on from the last time that was written (seen), a tenth
-- slower, until TIME has caught up. AHEAD is by how much it is ahead, and JUMPED
-- that this call is the first to meet a clock that went back.
local NOW_US, AHEAD, JUMPED = ARGV[7] + 0, 0, false
if NOW_US == 0 then
  local t = redis.call('TIME')
  NOW_US = t[1] * 1000000 + t[2]
end
if NOW_US < 0 then
  NOW_US = -NOW_US
elseif NOW_US < S.seen then
  local passed = NOW_US - S.seen + (redis.call('HGET', K_STOCK, 'ahead') or 0)
  JUMPED = passed < 0
  AHEAD = S.seen + math.floor(math.max(0, passed) * 0.9) - NOW_US
  NOW_US = NOW_US + AHEAD
end
local NOW, WALL = math.floor(NOW_US / 1000), math.floor((NOW_US - AHEAD) / 1000)

-- No new offers, walk-in holds or retakes any more; told offers and live holds
-- go on. The shop named an instant, so TIME decides.
local ENDED = S.ends > 0 and WALL >= S.ends

local function replication_id()
  local info = redis.call('INFO', 'replication')
  local _, last = string.find(info, 'master_replid:', 1, true)
  return string.sub(info, last + 1, last + 40)
end

-- A SKU in a layout other than that of these scripts is not touched (LAYOUT is
-- written above them). The fence: the replication id changes whenever this server
-- may have lost acknowledged writes.
local FOREIGN, SHUT = not MISSING and S.layout ~= LAYOUT, nil
if FOREIGN then
  SHUT = { 'layout', S.layout, LAYOUT }
else
  local id = FENCED and replication_id() or ''
  if MISSING or (FENCED and S.fence ~= id) then SHUT = { 'closed', id, MISSING and 1 or 0 } end
end

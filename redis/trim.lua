-- trim: drops ledger lines that are past every retention, below an opening
-- balance.
-- ARGV +1 the most lines to drop.
-- A line within the longer retention of records and sales never goes, and the
-- newest line never does. The opening balance takes the id, time and number of
-- the last line that goes and the counters after it, and stands in the stock hash
-- as JSON; it is written first.
-- Answers {"ok", 0, lines dropped, 1 when more may go}.
if SHUT then return SHUT end
local before, bound = NOW - math.max(KEEP, KEEP_SALE), num(1)
local function fields(line)
  local out = {}
  for i = 1, #line[2], 2 do out[line[2][i]] = line[2][i + 1] end
  return out
end
local function may_go(line) return tonumber(line.t) < before end

local lines = redis.call('XRANGE', K_LEDGER, '-', '+', 'COUNT', 1)
if #lines == 0 or not may_go(fields(lines[1])) then return { 'ok', 0, 0, 0 } end
lines = redis.call('XRANGE', K_LEDGER, '-', '+', 'COUNT', bound + 1)
local kept = redis.call('HGET', K_STOCK, 'opening')
local o = kept and cjson.decode(kept) or { received = 0, corrected = 0, returned = 0 }
local adds = { restock = 'received', correction = 'corrected', level = 'corrected', ['return'] = 'returned' }
local names = {
  at = 't', epoch = 'e', n = 'n', generation = 'g', on_hand = 'oh', held = 'h', offered = 'o', sold = 's',
}
local dropped = 0
for i = 1, #lines - 1 do
  local line = fields(lines[i])
  if not may_go(line) then break end
  local total = line.v == 'stock' and adds[line.k]
  if total then o[total] = o[total] + tonumber(line.u) end
  o.id = lines[i][1]
  for name, field in pairs(names) do o[name] = tonumber(line[field]) end
  dropped = i
end
if dropped == 0 then return { 'ok', 0, 0, 0 } end
redis.call('HSET', K_STOCK, 'opening', cjson.encode(o))
redis.call('XTRIM', K_LEDGER, 'MINID', lines[dropped + 1][1])
return { 'ok', 0, dropped, dropped == bound and 1 or 0 }

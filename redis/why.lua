-- why: how the line stands, or one entry in it. An ended lease is swept: see tidy.
-- ARGV +1 entry id or "", +2 how many heads of the line and offers to name.
-- Answers {"ok" or "unknown", 0, heads, passed over, the first of them, offers that nobody
-- has acknowledged, place, ahead, record, hold record, counters...}. Heads are a JSON
-- list of id, place and record in turn. A place is line, fresh (not acknowledged),
-- limit (has as much as a person may), parked, or offer (its workflow does not
-- know of the offer yet); "" is none.
if SHUT then return SHUT end
local id, most = arg(1), num(2)
if tidy() then return { 'again', 0 } end
ripen() -- as the next verb will; nothing of it is written here

local function place(entry, e)
  if e[E_STATE] == 'offered' then return redis.call('ZSCORE', K_OFFERS, 'o:' .. e[E_HOLD]) and 'offer' or '' end
  if redis.call('ZSCORE', K_FRESH, entry) then return 'fresh' end
  if redis.call('ZSCORE', K_PARKED, entry) then return 'parked' end
  if redis.call('ZSCORE', K_LIMITED, entry) then return 'limit' end
  if not (redis.call('ZSCORE', K_LINE, entry) or redis.call('ZSCORE', K_BACK, entry)) then return '' end
  return room(e[E_PERSON]) > 0 and 'line' or 'limit'
end
local function list(t) return #t > 0 and cjson.encode(t) or '[]' end

local found = heads(most)
local part = redis.call('ZRANGE', K_FRESH, 0, most - 1, 'WITHSCORES')
for i = 1, #part, 2 do found[#found + 1] = { id = part[i], arrival = tonumber(part[i + 1]) } end
table.sort(found, function(a, b) return a.arrival < b.arrival end)
local named = {}
for i = 1, math.min(most, #found) do
  local entry = found[i].id
  local e = get_entry(entry)
  named[#named + 1] = entry
  named[#named + 1] = place(entry, e)
  named[#named + 1] = cjson.encode(e)
end
local offers = {}
if most > 0 then
  for _, member in ipairs(redis.call('ZRANGE', K_OFFERS, 0, most - 1)) do
    local h = get_hold(string.sub(member, 3))
    if h then offers[#offers + 1] = h[H_ENTRY] end
  end
end

local verdict, where, ahead, record, hold = 'ok', '', 0, '', ''
if id ~= '' then
  local e = get_entry(id)
  if e then
    where, record = place(id, e), cjson.encode(e)
    local before = '(' .. e[E_ARRIVAL]
    ahead = redis.call('ZCOUNT', K_LINE, '-inf', before) + redis.call('ZCOUNT', K_BACK, '-inf', before) +
      redis.call('ZCOUNT', K_FRESH, '(' .. int(passed_over_up_to()), before)
    local h = e[E_HOLD] ~= '' and get_hold(e[E_HOLD])
    hold = h and cjson.encode(h) or ''
  else
    verdict = 'unknown'
  end
end
return {
  verdict, 0, list(named), redis.call('ZCARD', K_PARKED) + redis.call('ZCARD', K_LIMITED),
  redis.call('ZRANGE', K_PARKED, 0, 0)[1] or redis.call('ZRANGE', K_LIMITED, 0, 0)[1] or '', list(offers),
  where, ahead, record, hold, unpack(counters()),
}

-- drain: hands out what is due in the outbox and moves it 30 s ahead; what was
-- handed out 20 times comes last, ten minutes on. Offers of a paused SKU stay, and so
-- do those that would be more than 500 on their way: a big restock would else be
-- handed out again and again while its owners are still taking note.
-- ARGV +1 limit. Answers {"ok", wake, ms until more is due or -1, then for each
-- item: member, handed before, sealed, entry record, hold record}.
-- A key that a hand has deleted left its counterpart behind: that closes the SKU.
if SHUT then return SHUT end
-- Looked for here only, where no shopper waits for it.
local function lost()
  return redis.call('EXISTS', K_LEDGER) < 1 or
    S.held + S.offered > 0 and redis.call('EXISTS', K_HOLDS, K_TALLY) < 2 or
    waiting() > 0 and redis.call('EXISTS', K_ENTRIES, K_PEOPLE) < 2
end
if FENCED and lost() then
  redis.call('HDEL', K_STOCK, 'fence')
  return { 'closed', replication_id(), 0 }
end
local MOST_FLYING = 500
local more = sweep()
more = settle() or more
-- What was swept and offered counts: a call does so much of everything together.
local limit = math.max(1, num(1) - spent)
local items, now_us = {}, math.max(NOW_US, S.stamp)
local due = {}
local outboxes = S.paused == 0 and { K_OUTBOX, K_OFFERS } or { K_OUTBOX }
local held_back = false
for _, from in ipairs(outboxes) do
  local most = limit + 1
  if from == K_OFFERS then
    -- What was handed out 20 times is past the 30 s and keeps nobody back.
    local flying = redis.call('ZCOUNT', from, '(' .. int(now_us), int(now_us + 30000000 + 500))
    local room = math.max(0, MOST_FLYING - flying)
    if room < most then
      most = room
      held_back = redis.call('ZCOUNT', from, '-inf', int(now_us)) > room
    end
  end
  local page = most > 0 and redis.call('ZRANGEBYSCORE', from, '-inf', int(now_us), 'WITHSCORES', 'LIMIT', 0, most) or {}
  for i = 1, #page, 2 do due[#due + 1] = { page[i], tonumber(page[i + 1]) } end
end
table.sort(due, function(a, b) return a[2] < b[2] or a[2] == b[2] and a[1] < b[1] end)
local taken = 0
for _, item in ipairs(due) do
  local member = item[1]
  local kind, id = string.sub(member, 1, 1), string.sub(member, 3)
  if taken < limit then
    taken = taken + 1
    local handed = redis.call('HINCRBY', K_PARCELS, '#' .. member, 1)
    local wait = handed > 20 and 600000000 or 30000000
    local to = outbox_of(member)
    redis.call('ZADD', to, int(now_us + wait + taken - 1), member)
    -- Records go out as they are stored.
    local hold, held, entry = '', '', id
    if kind == 'o' then
      hold, held = id, redis.call('HGET', K_HOLDS, id) or ''
      entry = held ~= '' and cjson.decode(held)[H_ENTRY] or ''
    end
    local entered = entry ~= '' and redis.call('HGET', K_ENTRIES, entry) or ''
    if kind == 'e' and entered ~= '' then
      hold = cjson.decode(entered)[E_HOLD]
      held = hold ~= '' and redis.call('HGET', K_HOLDS, hold) or ''
    end
    items[#items + 1] = member
    items[#items + 1] = handed - 1
    items[#items + 1] = kind == 's' and redis.call('HGET', K_PARCELS, member) or ''
    items[#items + 1] = entry
    items[#items + 1] = entered
    items[#items + 1] = hold
    items[#items + 1] = held
  end
end
-- When to come again: at once, or at the next thing that no other call brings.
local next_ms = -1
local function at(ms)
  ms = math.max(0, math.ceil(ms))
  if next_ms < 0 or ms < next_ms then next_ms = ms end
end
local stop = more and first_fresh()
if S.look == 1 then
  at(0)
elseif stop then
  -- When that entry is passed over at the earliest; each acknowledgement settles
  -- by itself.
  at(math.max((stop - NOW_US) / 1000 + LEASE, 1000))
elseif more or #due > limit then
  at(0)
end
if held_back then at(200) end
for _, from in ipairs(outboxes) do
  local first = redis.call('ZRANGEBYSCORE', from, '(' .. int(now_us), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if first[2] then at((tonumber(first[2]) - NOW_US) / 1000) end
end
-- Who is at the limit waits for a lease of their own.
if redis.call('EXISTS', K_LINE, K_BACK, K_LIMITED) > 0 then
  local lease = redis.call('ZRANGE', K_LEASES, 0, 0, 'WITHSCORES')
  if lease[2] then at(tonumber(lease[2]) - NOW) end
end
if purge() then at(0) end
-- Who comes back within the second needs no wake meanwhile; should it die, the next
-- second has one.
set('woke', (next_ms >= 0 and next_ms <= 1000) and NOW or 0)
flush()
return { 'ok', 0, next_ms, unpack(items) }

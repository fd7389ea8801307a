-- The turn of the line: who is next, settle, and how a verb that writes ends.

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

-- Moves a bite of one set into another. Answers whether something is left.
local function move_bite(from, to)
  local scores, ids = {}, {}
  local some = redis.call('ZRANGE', from, 0, LOOK_BOUND - 1, 'WITHSCORES')
  for i = 1, #some, 2 do
    ids[#ids + 1] = some[i]
    scores[i], scores[i + 1] = some[i + 1], some[i]
  end
  if #ids > 0 then
    redis.call('ZADD', to, unpack(scores))
    redis.call('ZREM', from, unpack(ids))
  end
  return redis.call('ZCARD', from) > 0
end
-- After a change of the limit the line stands until all who were at the old one are
-- in it again, in bites.
local function look_again()
  if S.look == 0 then return end
  if not move_bite(K_LIMITED, K_LINE) then set('look', 0) end
end
-- A new generation brings back all who were parked, however many, by a new name for
-- their set. Before it what is left of those who came back earlier goes into the line,
-- or the line to them when it is shorter, in bites: all of them may be offered
-- something, so that it makes no difference to anybody where they stand. Answers
-- whether a bite is left.
local function make_room()
  if redis.call('EXISTS', K_PARKED, K_BACK) < 2 then return false end
  if redis.call('ZCARD', K_BACK) <= redis.call('ZCARD', K_LINE) then return move_bite(K_BACK, K_LINE) end
  if move_bite(K_LINE, K_BACK) then return true end
  redis.call('RENAME', K_BACK, K_LINE)
  return false
end
local function raise_generation()
  add('gen', 1)
  if redis.call('EXISTS', K_PARKED) == 1 then redis.call('RENAME', K_PARKED, K_BACK) end
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

local function make_offer(head, e, max_units)
  local id, from = head.id, head.from
  local units = math.min(e[E_UNITS], max_units)
  local hold = offer_id(id)
  local h = new_hold('offered', units, e[E_PERSON], id, S.gen, NOW + max_age())
  h[H_OFFERED] = NOW
  add('offered', units)
  count(e[E_PERSON], units)
  put_hold(hold, h)
  redis.call('ZREM', from, id)
  e[E_STATE] = 'offered'
  e[E_HOLD] = hold
  e[E_GEN] = S.gen
  put_entry(id, e)
  outbox_add('o:' .. hold)
  hold_line('offer', 'offered', hold, h, 'settle')
  spent = spent + 1
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
  local bound = math.max(1, OFFER_BOUND - spent)
  -- With no limit each takes a unit at least.
  if S.limit == 0 then bound = math.min(bound, available()) end
  local first, stop = heads(bound), first_fresh()
  for _, head in ipairs(first) do
    if available() <= 0 then return false end
    if stop and stop < head.arrival then return true end
    local e = get_entry(head.id)
    local most = math.min(available(), room(e[E_PERSON]))
    if most <= 0 then
      move(head.id, head.from, K_LIMITED, int(head.arrival))
    else
      make_offer(head, e, most)
    end
  end
  bitten = available() > 0 and #first == bound
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

-- Answers whether a person may have room below the limit that they had not before.
local function purge()
  local room_made = false
  local due = redis.call('ZRANGEBYSCORE', K_PURGE, '-inf', NOW, 'LIMIT', 0, PURGE_BOUND)
  for _, member in ipairs(due) do
    local kind, id = string.sub(member, 1, 1), string.sub(member, 3)
    if kind == 'h' then
      local h = get_hold(id)
      -- A swept hold may live again, and a sale is kept longer than its sweep.
      if h and h[H_ENDED] > 0 and h[H_ENDED] + (h[H_STATE] == 'sold' and KEEP_SALE or KEEP) <= NOW then
        -- A limit counts the sales that are on record.
        if h[H_STATE] == 'sold' then
          count(h[H_PERSON], h[H_RETURNED] - h[H_UNITS])
          room_made = S.limit > 0
        end
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
  return room_made
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
  more = purge() or more
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

-- Before a look at the counters: what has ended by itself is swept, and what that
-- frees is the line's, as in any verb. Where no lease has ended nothing is written. A
-- look asks for no wake: the next verb does, as it would if it had swept itself.
-- Answers whether more leases have ended than one sweep takes.
local function tidy()
  local more = sweep()
  if spent > 0 then
    settle()
    flush()
  end
  return more
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
  local place, before = 1, '(' .. e[E_ARRIVAL]
  for _, from in ipairs({ K_LINE, K_BACK, K_FRESH, K_PARKED, K_LIMITED }) do
    place = place + redis.call('ZCOUNT', from, '-inf', before)
  end
  return place
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

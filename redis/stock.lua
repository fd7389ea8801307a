-- stock: a movement of physical stock, once by event id.
-- ARGV +1 event id, +2 kind, +3 units (restock, return, level) or delta
-- (correction), +4 "1" to allow a shortfall, +5 actor, +6 reason; return: +7 hold
-- id, +8 return id, +9 "1" when the units can be sold again; level: +10 version,
-- +11 how many of our sales the count has in it; +12 a print of all that it moves.
-- Answers {"ok", wake, applied, reason, delta, n, print, counters...}: delta is
-- what on_hand moved by, n the ledger's number when the event was decided, print
-- that of the event which was. "again" while leases that end would refuse it, or while those who come back have no room. A repeat answers the kept outcome with the counters
-- as they are now.
if SHUT then return SHUT end
local event, kind, units, actor, why = arg(1), arg(2), num(3), arg(5), arg(6)
-- A lease that has ended must not refuse a correction, whose outcome is kept. Nor
-- does the line take meanwhile what the correction is about; a wake is asked for in
-- case nobody asks again.
if sweep() and (kind == 'correction' or kind == 'level') then
  settled = true
  return finish('again')
end

-- Each kind checks without writing and answers the delta of on_hand, or nil and
-- the refusal.
local hold
local kinds = {}
function kinds.restock() return units end
function kinds.correction() return units end
function kinds.level()
  if num(10) <= S.level then return nil, 'level-outdated' end
  -- A sale that was counted may have come back since.
  if num(11) > S.sold + S.returned then return nil, 'counts-unknown-sales' end
  return units - (S.sold - num(11)) - S.on_hand
end
kinds['return'] = function()
  hold = get_hold(arg(7))
  if not hold then return nil, 'unknown-hold' end
  if hold[H_STATE] ~= 'sold' then return nil, 'not-sold' end
  if hold[H_RETURNED] + units > hold[H_UNITS] then return nil, 'more-than-sold' end
  return arg(9) == '1' and units or 0
end

-- A return that was made counts once by its return id as well, whatever event
-- brings it; one that was refused may come again in another event. No event id
-- has a line break in it. What moved stock is remembered as long as a sale, or a
-- shop that sends an old event again would count it twice; a refusal moved nothing.
local KEEP_LONG = math.max(KEEP, KEEP_SALE)
local function keep(name, outcome, ms)
  redis.call('HSET', K_EVENTS, name, outcome)
  purge_later('v:' .. name, ms)
end
local made = kind == 'return' and 'return\n' .. arg(8)
local kept = redis.call('HGET', K_EVENTS, event)
local before = made and not kept and redis.call('HGET', K_EVENTS, made)
local another = before and cjson.decode(before)[6] ~= arg(12) -- that return was of another hold, or of other units
if before and not another then
  kept = before
  keep(event, kept, KEEP_LONG) -- who asks by the event's id must learn it
end
local applied, reason, delta, n, movement
if kept then
  local o = cjson.decode(kept)
  applied, reason, delta, n, movement = o[1], o[2], o[3], o[5], o[6]
else
  if another then
    delta, reason = nil, 'return-id-reused'
  else
    delta, reason = kinds[kind]()
  end
  movement = arg(12)
  local after = S.on_hand + (delta or 0)
  -- A return brings nothing that was not ours before.
  if delta and not made and after + S.sold > 1000000000 then delta, reason = nil, 'too-many' end
  if delta and delta < 0 and (after < 0 or (after < S.held + S.offered and arg(4) ~= '1')) then
    delta, reason = nil, 'would-oversell'
  end
  applied, reason, delta = delta and 1 or 0, reason or '', delta or 0
  if applied == 1 and delta > 0 and make_room() then
    settled = true
    return finish('again')
  end
  n = S.n + applied -- the number of its line, or of the last one before it
  local outcome = cjson.encode({ applied, reason, delta, NOW, n, movement })
  keep(event, outcome, applied == 1 and KEEP_LONG or KEEP)
  if made and applied == 1 then keep(made, outcome, KEEP_LONG) end
  if applied == 1 then
    add('on_hand', delta)
    if kind == 'return' then
      hold[H_RETURNED] = hold[H_RETURNED] + units
      put_hold(arg(7), hold)
      add('returned', delta)
      add('sold', -delta)
      count(hold[H_PERSON], -units)
    else
      add(kind == 'restock' and 'received' or 'corrected', delta)
    end
    if kind == 'level' then set('level', num(10)) end
    if delta > 0 then raise_generation() end
    if hold then
      -- What came back and cannot be sold again moves nothing.
      hold_line('stock', arg(9) == '1' and 'return' or 'discarded', arg(7), hold, actor,
        { units = units, gen = S.gen, other = event, reason = why, ref = hold[H_REF] })
    else
      ledger('stock', kind, delta, event, { actor = actor, reason = why })
    end
  end
end
settle()
return finish('ok', applied, reason, delta, n, movement, unpack(counters()))

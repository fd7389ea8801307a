-- confirm: a live hold becomes a sale by a payment. First to pay wins.
-- ARGV +1 hold id, +2 payment ref, +3 amount, +4 currency, +5 actor, +6 "1" to
-- retake an expired hold: straight from available to sold, if nobody eligible
-- waits, the SKU is neither paused nor ended, the person is within limits and
-- has pressed no other offer of the entry; an offer not pressed goes back.
-- +7 "1" to refuse an amount other than the one that payment-started named.
-- The same ref again: ok. Refused: amount-mismatch, refunded (the ref is marked), hold-ended,
-- payment-conflict (another ref made the sale), shortfall, unknown. A retake that a
-- bound would have refused: again.
-- Answers {verdict, wake, ms left, ms now, 0, record}.
if SHUT then return SHUT end
local id, ref = arg(1), arg(2)
local more = sweep()
local h = touch_hold(id)
if not h then return finish_hold('unknown', nil) end
local state, units = h[H_STATE], h[H_UNITS]
if state == 'sold' then
  return finish_hold(h[H_REF] == ref and 'ok' or 'payment-conflict', h)
end
if marked(h, ref) then return finish_hold('refunded', h) end
local retake, other = false, nil
if state ~= 'held' and state ~= 'provisional' then
  if state == 'expired' and arg(6) == '1' then
    if more or line_first() then return finish_hold('again', nil) end
    retake = open_to_all() >= units and room(h[H_PERSON]) >= units
  end
  local e = h[H_ENTRY] ~= '' and get_entry(h[H_ENTRY])
  if e and e[E_HOLD] ~= id then
    retake = retake and e[E_STATE] ~= 'holding'
    other = e[E_STATE] == 'offered' and e[E_HOLD]
  end
  if not retake then return finish_hold('hold-ended', h) end
end
if arg(7) == '1' and arg(4) ~= '' and h[H_CURRENCY] ~= '' and (arg(3) ~= h[H_AMOUNT] or arg(4) ~= h[H_CURRENCY]) then
  return finish_hold('amount-mismatch', h)
end
if S.on_hand < units then return finish_hold('shortfall', h) end
-- Nobody eligible waits for its units, or the retake would have been refused.
if other then give_back(other, get_hold(other), 'released', 'release', 'bought', arg(5)) end
if retake then
  count(h[H_PERSON], units)
  h[H_RETAKEN] = 1
  h[H_REASON] = ''
else
  add('held', -units)
  redis.call('ZREM', K_LEASES, id)
end
add('on_hand', -units)
add('sold', units)
h[H_STATE] = 'sold'
h[H_ENDED] = NOW
h[H_REF] = ref
put_hold(id, h)
purge_later('h:' .. id, KEEP_SALE)
end_entry(h[H_ENTRY], 'bought', true)
hold_line('confirm', retake and 'retaken' or 'sold', id, h, arg(5), { ref = ref, amount = arg(3), currency = arg(4) })
return finish_hold('ok', h)

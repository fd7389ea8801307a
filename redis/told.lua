-- told: right before an attempt to send an offer's text, and once more at sent.
-- ARGV +1 hold id, +2 window ms, +3 sent grace ms, +4 greatest age ms, +5 "1" at
-- sent, which is final. The deadline never passes offered_at + greatest age.
-- A paused SKU puts the offer back into the outbox.
-- Answers {verdict, wake, ms left, ms now, 0, record}.
if SHUT then return SHUT end
local id, sent = arg(1), arg(5) == '1'
sweep()
local h = touch_hold(id)
if not h then return finish_hold('unknown', nil) end
if h[H_STATE] ~= 'offered' then return finish_hold('gone', h) end
if not sent and S.paused == 1 then
  outbox_add('o:' .. id)
  return finish_hold('paused', h)
end
if not sent and ENDED then return finish_hold('sale-ended', h) end
if h[H_SENT] == 0 then
  local wait = num(2)
  if sent then h[H_SENT] = NOW else wait = wait + num(3) end
  if h[H_TOLD] == 0 then h[H_TOLD] = NOW end
  local deadline = math.min(NOW + wait, h[H_OFFERED] + num(4))
  -- A press that died may have left a later one.
  if h[H_BACK] == 1 then deadline = math.max(deadline, h[H_DEADLINE]) end
  h[H_DEADLINE] = deadline
  put_hold(id, h)
end
return finish_hold('ok', h)

-- The walk-in, decided before settle is made.

-- Answers the verdict and the new hold's record, or how many wait if refused.
local function walk_in(id, units, person, actor, swept, cart)
  if S.paused == 1 then return 'paused' end
  if ENDED then return 'sale-ended' end
  if room(person) < units then return 'limit-reached' end
  if open_to_all() < units then
    local line = S.offered > 0 or someone_eligible()
    return line and 'reserved-for-line' or 'sold-out', nil, waiting()
  end
  local h = afresh(swept, new_hold('provisional', units, person, '', S.gen, NOW + LEASE, cart))
  add('held', units)
  redis.call('HINCRBY', K_TALLY, person, units)
  local record = put_hold(id, h)
  redis.call('ZADD', K_LEASES, h[H_DEADLINE], id)
  hold_line('reserve', 'walk-in', id, h, actor)
  return 'ok', record
end

-- Nothing that the rest would do first or after: no lease ended, no unit is the
-- line's, nothing is to be handed out.
local function quiet()
  return S.look == 0 and redis.call('ZCOUNT', K_LEASES, '-inf', NOW) == 0 and
    (available() <= 0 or redis.call('ZCARD', K_LINE) + redis.call('ZCARD', K_FRESH) == 0) and
    (S.woke + 1000 > NOW or redis.call('ZCARD', K_OUTBOX) + redis.call('ZCARD', K_OFFERS) == 0) and
    (S.green == 0 or NOW < S.green_at + LEASE)
end
if arg(4) ~= '1' and redis.call('HEXISTS', K_HOLDS, arg(1)) == 0 and quiet() then
  local verdict, record, people = walk_in(arg(1), num(2), arg(3), arg(5), nil, arg(6))
  flush()
  return { verdict, 0, record and LEASE or 0, NOW, people or 0, record or '' }
end

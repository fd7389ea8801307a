-- The refusal that most of a stampede meets, by counts alone: nothing is free,
-- nobody has a limit or had one a moment ago, the id is new, and nothing is due that would change it (an
-- ended lease, a wake, an acknowledgement that lets the line go on). What is not
-- as plain is left to walk_in and to reserve, which answer the same.
if SHUT then return SHUT end
if not JUMPED and S.on_hand <= S.held + S.offered and S.paused == 0 and not ENDED and S.limit == 0 and S.look == 0 and ARGV[13] ~= '1' and
  redis.call('HEXISTS', K_HOLDS, ARGV[10]) == 0 and (S.held == 0 or redis.call('ZCOUNT', K_LEASES, '-inf', NOW) == 0) and
  (S.woke + 1000 > NOW or redis.call('EXISTS', K_OUTBOX, K_OFFERS) == 0) and
  (S.green == 0 or NOW < S.green_at + LEASE) then
  local line, fresh, back, parked = redis.call('ZCARD', K_LINE), redis.call('ZCARD', K_FRESH), 0, 0
  if redis.call('EXISTS', K_BACK, K_PARKED) > 0 then
    back, parked = redis.call('ZCARD', K_BACK), redis.call('ZCARD', K_PARKED)
  end
  local theirs = S.offered > 0 or line > 0 or back > 0
  if theirs or fresh == 0 then
    return { theirs and 'reserved-for-line' or 'sold-out', 0, 0, NOW, line + fresh + back + parked, '' }
  end
end

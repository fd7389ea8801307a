-- renew: leases begin anew for holds of a closed SKU that are about to be adopted, and
-- last as long as nothing expires after the opening. A door may have adopted one and
-- promised it, and Redis lost no more than that.
-- ARGV +1 the replication id of the server that was read, +2.. hold ids. What is not
-- provisional stays as it is.
-- Answers {verdict, wake}: ok; moved when the SKU is open, gone, on another server or
-- being rebuilt.
if FOREIGN then return SHUT end
if not SHUT or MISSING or SHUT[2] ~= arg(1) or redis.call('HEXISTS', K_STOCK, 'rebuild') == 1 then return { 'moved', 0 } end
for i = 2, #ARGV - 9 do
  local id = arg(i)
  local h = get_hold(id)
  if h and h[H_STATE] == 'provisional' then
    h[H_DEADLINE] = NOW + 60000
    put_hold(id, h)
    redis.call('ZADD', K_LEASES, h[H_DEADLINE], id)
  end
end
flush()
return { 'ok', 0 }

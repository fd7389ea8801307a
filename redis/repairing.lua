-- What the scripts of repair and rebuild share. ARGV +1 is "" when an open SKU is
-- repaired, else who rebuilds a closed one: the replication id that the rebuild began
-- with, and the word that its beginning left in the stock hash. Another server, a
-- newer rebuild and an emptied Redis have another, and nothing is written.
local function rebuilds(who)
  return SHUT and who ~= '' and SHUT[1] == 'closed' and not MISSING and
    SHUT[2] .. ' ' .. (redis.call('HGET', K_STOCK, 'rebuild') or '') == who
end

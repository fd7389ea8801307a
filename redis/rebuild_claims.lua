-- rebuild (claims): what each person of a closed SKU has, as its records say.
-- ARGV +1 who rebuilds (repairing.lua), +2 tally or people, +3 "1"
-- to begin with nothing, then pairs of person and units, or person and live entry.
-- Answers {verdict, wake}: ok.
if not rebuilds(arg(1)) then return SHUT or { 'changed', 0 } end
settled = true
local to = arg(2) == 'tally' and K_TALLY or K_PEOPLE
if arg(3) == '1' then redis.call('UNLINK', to) end
for i = 13, #ARGV, 2 do redis.call('HSET', to, ARGV[i], ARGV[i + 1]) end
return finish('ok')

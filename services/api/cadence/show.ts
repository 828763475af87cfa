import { type CadenceAccount, cadenceOf, nextFreeAt, reachOf, usedIn } from '#domain/cadence.ts';
import type { AccountRow } from '#projections/models/accounts.ts';
import { slotsOf } from '#projections/queries/cadence-slots.ts';
import type { PostingRules } from '#projections/queries/posting-rules.ts';
import type { Call } from '../operation.ts';

/** How often accounts may publish, as the api shows it. */

export const cadenceAccountOf = ({
  id,
  platform,
  network,
  observed_limits: observed,
}: Pick<AccountRow, 'id' | 'platform' | 'network' | 'observed_limits'>): CadenceAccount & { readonly id: string } => ({
  ...{ id, platform, network },
  observed: observed ?? [],
});

const isoOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

/** Days ahead in which the next free time is looked for. */
const aheadMs = 8 * 86_400_000;

export const showCadence = async (
  { deps, now }: Pick<Call, 'deps' | 'now'>,
  account: ReturnType<typeof cadenceAccountOf>,
  rules: PostingRules,
) => {
  const cadence = cadenceOf(account, rules.cadence ?? []);
  const at = Date.parse(now);
  const reach = reachOf(cadence);
  const slots =
    reach === 0 ? [] : await slotsOf(deps.pool, { accountId: account.id, from: at - reach, to: at + aheadMs });
  return {
    accountId: account.id,
    platform: account.platform,
    windows: cadence.windows.map((window) => {
      const { used, remaining, resetsAt } = usedIn(window, slots, at);
      const { name, limit, source } = window;
      return { name, limit, used, remaining, resetsAt: isoOf(resetsAt), source };
    }),
    minIntervalMinutes: cadence.minIntervalMinutes,
    nextFreeAt: isoOf(nextFreeAt(cadence, slots, at)),
  };
};

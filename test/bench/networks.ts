/**
 * Live networks, simulated on this machine: how late targets start beside a slow network, what a night of refreshes
 * and of figures asks of each app's budget, and the memory of a large upload that is resumed. Production defaults.
 *
 * Run alone: node test/bench/networks.ts [starts|refreshes|nights|upload]… (QUICK=1 for the short form).
 */
import { nights } from './networks/nights.ts';
import { refreshes } from './networks/refreshes.ts';
import { starts } from './networks/starts.ts';
import { upload } from './networks/upload.ts';
import { type Part, runParts } from './parts.ts';
import { type BenchRow, printRows } from './row.ts';

const parts: Readonly<Record<string, Part>> = {
  starts: {
    says: 'targets due in one second on three networks, beside one that answers after 20 s, and on six',
    run: starts,
  },
  refreshes: { says: 'calls of a night that refreshes 10,000 accounts', run: refreshes },
  nights: {
    says: 'what 100,000 accounts of ten networks ask of each app in a night, by a simulated clock',
    run: nights,
  },
  upload: {
    says: 'memory of a large video to each network that takes one in parts, whose worker is killed',
    run: upload,
  },
};

export const run = ({ quick }: { readonly quick: boolean }): Promise<readonly BenchRow[]> =>
  runParts({ name: 'networks', parts }, quick);

if (import.meta.main) {
  const asked = process.argv.slice(2);
  const rows = await runParts(
    { name: 'networks', parts },
    process.env.QUICK === '1',
    asked.length === 0 ? undefined : asked,
  );
  printRows(rows);
}

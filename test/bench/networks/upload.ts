/** Memory of a worker that ends a video of 100 MB to X, which two workers before it have begun and not ended. */
import { killedUpload, mostAgainBytes, mostGrownBytes } from '#test/infra/platforms/x/killed-upload.ts';
import { type BenchRow, spread } from '../row.ts';

const mb = 1024 * 1024;

export const upload = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const grown: number[] = [];
  let again = 0;
  let begun = 0;
  for (let turn = 0; turn < (quick ? 1 : 3); turn += 1) {
    const { ended, initializes, againBytes } = await killedUpload();
    if (ended === null) throw new Error('the last worker told nothing');
    grown.push(ended.grownBytes / mb);
    again = Math.max(again, againBytes / mb);
    begun = Math.max(begun, initializes);
  }
  const { median, min, max } = spread(grown);
  return [
    {
      name: '100 MB video to X, its worker killed twice: memory',
      unit: 'MB',
      ours: median,
      goal: `≤ ${mostGrownBytes / mb}, begun once`,
      ok: max <= mostGrownBytes / mb && begun === 1 && again <= mostAgainBytes / mb,
      note: `min ${min.toFixed(1)}, max ${max.toFixed(1)}; begun ${begun} times; at most ${again.toFixed(1)} MB sent again`,
    },
  ];
};

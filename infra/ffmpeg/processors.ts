/** Pins a render to its number of processors, however many threads the encoders start. */
import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** `0-2,5` */
const listed = (text: string): readonly number[] =>
  text.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });

const allowedTo = (process: string): readonly number[] =>
  listed(/^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync(`/proc/${process}/status`, 'utf8'))?.[1] ?? '');

/** Processors to which running renders of this or another worker are pinned. */
const busy = (mine: readonly number[]): readonly number[] =>
  globSync('/proc/[0-9]*/comm').flatMap((file) => {
    try {
      if (readFileSync(file, 'utf8').trim() !== 'ffmpeg') return [];
      const held = allowedTo(file.split('/')[2] ?? '');
      return held.length < mine.length ? held : [];
    } catch {
      return []; // It ended in between.
    }
  });

/** The processors with the fewest renders. Null: all, or a system that does not report them. */
export const processorsFor = (threads: number): readonly number[] | null => {
  if (threads >= availableParallelism()) return null;
  try {
    const mine = allowedTo('self');
    const held = busy(mine);
    const uses = (processor: number): number => held.filter((each) => each === processor).length;
    return [...mine].sort((a, b) => uses(a) - uses(b)).slice(0, threads);
  } catch {
    return null;
  }
};

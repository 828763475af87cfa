/** The child processes of one of ours, as Linux shows them. */
import { readdirSync, readFileSync } from 'node:fs';

interface Running {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly state: string;
  readonly name: string;
  readonly residentBytes: number;
}

const running = (): readonly Running[] =>
  readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      const rest = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const pages = Number(readFileSync(`/proc/${entry}/statm`, 'utf8').split(' ')[1]);
      return [
        {
          pid: Number(entry),
          state: rest[0] ?? '',
          parent: Number(rest[1]),
          group: Number(rest[2]),
          name: stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')),
          residentBytes: pages * 4_096,
        },
      ];
    } catch {
      return []; // It ended in between.
    }
  });

/** Processes in groups that children of `parent` lead: the tools it runs now. */
export const toolsOf = (parent: number): readonly Running[] => {
  const all = running();
  const groups = new Set(all.filter((each) => each.parent === parent && each.group === each.pid).map(({ pid }) => pid));
  return all.filter(({ group }) => groups.has(group));
};

/** Live processes of a group; zombies do not count. */
export const aliveIn = (group: number): readonly Running[] =>
  running().filter((each) => each.group === group && each.state !== 'Z');

import { Rejection } from '#domain/decider.ts';
import { type CommandOutput, type Given, type Shown, UsageError } from './context.ts';

/** Commands about clusters on this machine's disk whose data folders were removed. They need no database. */

export interface DataFiles {
  /** Clusters of data folders that were removed. */
  former(): readonly Shown[];
  /** Null: no cluster has that name. */
  remove(name: string): Shown | null;
}

export const listData = (files: DataFiles): CommandOutput => files.former();

export const removeData = (files: DataFiles, { at }: Given): CommandOutput => {
  const name = at(0);
  if (!/^[0-9a-f]{16}\/former-\w+$/.test(name))
    throw new UsageError(`${JSON.stringify(name)} is no name of a former cluster: data list shows them.`);
  const removed = files.remove(name);
  if (removed === null) throw new Rejection('not_found', 'There is no such former cluster: data list shows them.');
  return { ...removed, removed: true };
};

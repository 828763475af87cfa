import { tenantIdOf } from '#domain/ids.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { maxIntervalMinutes, maxPerDay } from '#schemas/cadence.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Admin, type CommandOutput, type Given, shown } from './context.ts';
import { modeOf, workspaceOf } from './find.ts';

/** How often the accounts of a workspace may publish. */

const platformOf = (text: string): Platform => {
  const platform = platforms.find((one) => one === text);
  if (platform === undefined) throw new UsageError(`--platform is one of ${platforms.join(', ')}.`);
  return platform;
};

const numberOf = (text: string | undefined, flag: string, min: number, max: number): number | null => {
  if (text === undefined) return null;
  const number = Number(text);
  if (!/^\d{1,6}$/.test(text) || number < min || number > max) {
    throw new UsageError(`--${flag} is a whole number from ${min} to ${max}.`);
  }
  return number;
};

export const setCadence = async (admin: Admin, { flag }: Given): Promise<CommandOutput> => {
  const named = flag('platform');
  const rule = {
    platform: named === undefined ? null : platformOf(named),
    minIntervalMinutes: numberOf(flag('interval'), 'interval', 1, maxIntervalMinutes),
    perDay: numberOf(flag('per-day'), 'per-day', 0, maxPerDay),
  };
  const mode = modeOf(flag('mode') ?? 'live');
  const { id: liveId } = await workspaceOf(admin, flag('workspace'));
  const workspaceId = tenantIdOf(liveId, mode);
  const { store, operator } = admin;
  const { positions } = operator;
  const context = contextOf(operator, workspaceId);
  await execute(store, workspace, workspaceId, { type: 'SetCadence', rule }, context, { positions });
  await shown(admin);
  const { platform, minIntervalMinutes, perDay } = rule;
  return {
    ...{ workspaceId, mode, platform: platform ?? 'all' },
    ...{ minIntervalMinutes: minIntervalMinutes ?? 'none', perDay: perDay ?? 'none' },
  };
};

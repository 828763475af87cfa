import { UsageError } from '#runtime/process/usage-error.ts';
import { MediaUsage } from '#services/workflows/media-usage.ts';
import type { Admin, CommandOutput, Given } from './context.ts';
import { workspaceOf } from './find.ts';

/** The quota of the media of a workspace and its sandbox twin. */

const bytesOf = (text: string): number | null => {
  if (text === 'default') return null;
  const bytes = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(bytes)) {
    throw new UsageError('--bytes is a whole number of bytes, or default.');
  }
  return bytes;
};

export const mediaQuota = async (admin: Admin, { flag }: Given): Promise<CommandOutput> => {
  const wanted = flag('bytes');
  const bytes = wanted === undefined ? undefined : bytesOf(wanted);
  const { id } = await workspaceOf(admin, flag('workspace'));
  const usage = new MediaUsage(admin.pool, admin.mediaQuota);
  if (bytes !== undefined) await usage.setQuota(id, bytes);
  const now = await usage.of(id);
  return { workspaceId: id, usedBytes: now.bytes, quotaBytes: now.quota };
};

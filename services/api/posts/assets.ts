import { needKey } from '#domain/media.ts';
import type { PostAsset, PostAssets } from '#domain/post/compose.ts';
import { type MediaRow, mediaByIds } from '#projections/models/media.ts';
import { assetFromStream, kindOr } from '#services/workflows/posts/accounts.ts';
import type { Call } from '../call/operation.ts';

/**
 * The assets that a body names. An asset that the read model does not show as publishable yet is looked up in its
 * stream: a caller that received `media.ready` may compose at once, however far behind the read models are.
 */

type Asking = Pick<Call, 'deps' | 'workspaceId'>;

const readAtOnce = 16;

const ofRow = (row: MediaRow): PostAsset => ({
  clientId: row.client_id,
  kind: kindOr(row.kind),
  status: row.status,
  publishable: row.status === 'transcoded',
  probe: row.probe,
  altText: row.alt_text,
  needs: new Map(row.needs.map((need) => [needKey(need), need])),
  sha256: row.source?.sha256 ?? null,
});

/** By id: the assets of the workspace among these. */
export const assetsByIds = async (call: Asking, ids: readonly string[]): Promise<PostAssets> => {
  const rows = await mediaByIds(call.deps.knex, call.workspaceId, ids);
  const found = new Map<string, PostAsset>();
  const others: string[] = [];
  for (const id of ids) {
    const row = rows.get(id);
    if (row?.status === 'transcoded') found.set(id, ofRow(row));
    else others.push(id);
  }
  // A draft may name a thousand assets; this call must not delay the reads of other calls.
  for (let at = 0; at < others.length; at += readAtOnce) {
    await Promise.all(
      others.slice(at, at + readAtOnce).map(async (id) => {
        const asset = await assetFromStream(call, id);
        if (asset !== null) found.set(id, asset);
      }),
    );
  }
  return found;
};

import { getMedia as queryMedia } from '#projections/models/media.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Media } from '#schemas/http/media.ts';
import { exampleMedia } from '../media/examples.ts';
import { progressOfRows, showMedia } from '../media/show.ts';
import { operation } from '../operation.ts';
import { notFound } from '../refusal.ts';
import { readRow } from '../rows.ts';

export const getMedia = operation({
  id: 'getMedia',
  method: 'GET',
  path: '/media/{id}',
  tag: 'media',
  summary: 'Get an asset, also one that is not uploaded yet',
  description:
    'Wait for `publishable` before you publish. You need not wait for a platform among the variants: a rendition that a post lacks is made before the post is due.',
  scope: 'media.read',
  idempotent: 'none',
  cost: 1,
  etag: true,
  params: IdParams,
  answer: Media,
  codes: [],
  example: { data: exampleMedia },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const row = await readRow(call, 'media', ['media'], (id) => queryMedia(deps.knex, workspaceId, id));
    // A deleted asset can no longer be read.
    if (row.status === 'deleted' || row.status === 'removed') throw notFound('media');
    const progress = await progressOfRows(call, [row]);
    return { data: await showMedia(call, row, progress.get(row.id) ?? null), revision: row.revision };
  },
});

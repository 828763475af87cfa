import type { NewestFirst } from '#projections/engine/rows.ts';
import { listMedia as queryMedia } from '#projections/models/media.ts';
import { Media, MediaQuery } from '#schemas/http/media.ts';
import { withinLimit } from '../client-limits.ts';
import { listPage, newestFirst } from '../cursor.ts';
import { exampleMedia } from '../media/examples.ts';
import { progressOfRows, showMedia } from '../media/show.ts';
import { operation } from '../operation.ts';

export const listMedia = operation({
  id: 'listMedia',
  method: 'GET',
  path: '/media',
  tag: 'media',
  summary: 'List assets, newest first',
  description: 'An upload is listed from its registration on.',
  scope: 'media.read',
  idempotent: 'none',
  cost: 1,
  query: MediaQuery,
  answer: Media,
  list: true,
  codes: [],
  example: { data: exampleMedia },
  handle: async (call) => {
    await call.behind(['media']);
    const { kind, folder, clientId, search } = call.query;
    const filters = {
      ...withinLimit(call.principal),
      ...(kind === undefined ? {} : { kind }),
      ...(folder === undefined ? {} : { folder }),
      ...(clientId === undefined ? {} : { clientId }),
      ...(search === undefined ? {} : { search }),
    };
    return listPage('listMedia', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        queryMedia(knex, call.workspaceId, filters, page),
      keyOf: newestFirst,
      beside: async (rows) => {
        const progress = await progressOfRows(call, rows);
        const shown = rows.map(
          async (row) => [row.id, await showMedia(call, row, progress.get(row.id) ?? null)] as const,
        );
        return new Map(await Promise.all(shown));
      },
      show: ({ id }, media) => media.get(id),
    });
  },
});

import type { Knex } from 'knex';
import { mediaIdsOf } from '#domain/post/content.ts';
import { type Decided, type ShownFileFacts, type ShownItem, shownContent } from '#domain/shown-content.ts';
import { accountsByIds } from '#projections/models/accounts.ts';
import { type MediaRow, mediaByIds } from '#projections/models/media.ts';

/** What a decision is about, with the names of its files and accounts as the workspace knows them now. */

type Asked = Pick<Decided, 'body' | 'targets' | 'others'>;

const factsOf = ({
  name,
  kind,
  content_type: contentType,
  size,
  source,
  alt_text: altText,
}: MediaRow): ShownFileFacts => ({
  ...{ name, kind, contentType, altText },
  bytes: source?.bytes ?? size?.bytes ?? null,
  sha256: source?.sha256 ?? null,
});

export const contentOf = async (
  knex: Knex,
  workspaceId: string,
  asked: Asked,
): Promise<{ readonly items: readonly ShownItem[]; readonly files: ReadonlyMap<string, MediaRow> }> => {
  const accountIds = [...asked.targets, ...asked.others].map(({ accountId }) => accountId);
  const [files, accounts] = await Promise.all([
    mediaByIds(knex, workspaceId, mediaIdsOf(asked.body)),
    accountsByIds(knex, workspaceId, accountIds),
  ]);
  const names = new Map(accounts.map((one) => [one.id, one.username ?? one.display_name ?? '']));
  const items = shownContent({
    ...asked,
    fileOf: (id) => {
      const row = files.get(id);
      return row === undefined ? null : factsOf(row);
    },
    nameOf: (id) => names.get(id) ?? '',
  });
  return { items, files };
};

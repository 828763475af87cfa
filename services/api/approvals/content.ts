import type { Knex } from 'knex';
import { rulesOf } from '#domain/platforms/index.ts';
import { mediaIdsOf } from '#domain/post/content.ts';
import { type Decided, type ShownFileFacts, type ShownItem, shownContent } from '#domain/shown-content.ts';
import { accountsByIds } from '#projections/models/accounts.ts';
import { type MediaRow, mediaByIds } from '#projections/models/media.ts';

/** What a decision is about, with the names of its files and accounts. */

type Named = Pick<Awaited<ReturnType<typeof accountsByIds>>[number], 'platform' | 'username' | 'display_name'>;
type Asked = Pick<Decided, 'body' | 'targets' | 'others'>;

/** What files and accounts are called. */
export interface Names {
  readonly files: (ids: readonly string[]) => Promise<ReadonlyMap<string, MediaRow>>;
  readonly accounts: (ids: readonly string[]) => Promise<readonly (Named & { readonly id: string })[]>;
}

/** As the read models have them. */
export const namesNow = (knex: Knex, workspaceId: string): Names => ({
  files: (ids) => mediaByIds(knex, workspaceId, ids),
  accounts: (ids) => accountsByIds(knex, workspaceId, ids),
});

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

/** Of one network people see the nickname of an account, and both where two have the same. */
const nameOf = ({ platform, username, display_name: nickname }: Named): string => {
  const isNickname = rulesOf(platform).showsNickname === true && nickname !== null;
  if (!isNickname) return username ?? nickname ?? '';
  return username === null ? nickname : `${nickname} (${username})`;
};

export const contentOf = async (
  called: Names,
  asked: Asked,
): Promise<{ readonly items: readonly ShownItem[]; readonly files: ReadonlyMap<string, MediaRow> }> => {
  const accountIds = [...asked.targets, ...asked.others].map(({ accountId }) => accountId);
  const [files, accounts] = await Promise.all([called.files(mediaIdsOf(asked.body)), called.accounts(accountIds)]);
  const names = new Map(accounts.map((one) => [one.id, nameOf(one)]));
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

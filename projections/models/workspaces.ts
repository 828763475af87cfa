import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { withRule } from '#domain/cadence.ts';
import type { Hold } from '#runtime/work/publishing-hold.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import type { Mode, Role } from '#schemas/common.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';
import { change, defineModel, type Row, unchanged } from '../engine/model.ts';
import { asRow } from '../engine/rows.ts';
import { view } from '../shapes.ts';
import { workspacePublisher } from '../webhooks/render/agency.ts';
import { isWithdrawnSql } from './sql.ts';

/** Agencies: their members and time zone. The sandbox twin is a row of its own that names its live workspace. */

interface Own {
  readonly name: string;
  readonly timezone: string;
  readonly mode: Mode;
  readonly twin_of: string | null;
  readonly members: Readonly<
    Record<string, { readonly name: string; readonly role: Role; readonly personId?: string }>
  >;
  /** The persons who are members, in the order of joining; null: none ever was. */
  readonly people: readonly string[] | null;
  /** Targets that may be due in one month; null: no limit. */
  readonly posting_quota: number | null;
  /** Revision of the event that set the quota; null: none ever did. */
  readonly posting_quota_revision: number | null;
  /** Null: none was ever set. */
  readonly cadence: readonly CadenceRule[] | null;
}
export type WorkspaceRow = Row<Own>;

export const workspaces = defineModel<Own, WorkspaceEvent>({
  name: 'workspaces',
  kind: 'workspace',
  publisher: workspacePublisher,
  columns: {
    name: 'text',
    timezone: 'text',
    mode: 'text',
    twin_of: 'uuid',
    members: 'jsonb',
    people: 'text[]',
    posting_quota: 'int4',
    posting_quota_revision: 'int4',
    cadence: 'jsonb',
  },
  indexes: [
    { on: '(twin_of) where twin_of is not null' },
    { on: '(id) where posting_quota_revision is not null' },
    { on: 'using gin (people) where people is not null' },
  ],
  on: {
    WorkspaceCreated: (_row, { name, timezone, mode, twinOf }) => ({
      name,
      timezone,
      mode,
      twin_of: twinOf,
      members: {},
      people: null,
      posting_quota: null,
      posting_quota_revision: null,
      cadence: null,
    }),
    WorkspaceProfileChanged: change((row, { name, timezone }) => ({ ...row, name, timezone })),
    MemberAdded: change((row, { memberId, name, role }) => ({
      ...row,
      members: { ...row.members, [memberId]: { name, role } },
    })),
    MemberIdentified: change((row, { memberId, personId }) => {
      const member = row.members[memberId];
      if (member === undefined) return row;
      const people = [...(row.people ?? []).filter((one) => one !== personId), personId];
      return { ...row, people, members: { ...row.members, [memberId]: { ...member, personId } } };
    }),
    MemberRoleChanged: change((row, { memberId, role }) => {
      const member = row.members[memberId];
      return member === undefined ? row : { ...row, members: { ...row.members, [memberId]: { ...member, role } } };
    }),
    MemberRemoved: change((row, { memberId }) => {
      const { [memberId]: removed, ...members } = row.members;
      const { personId } = removed ?? {};
      if (personId === undefined) return { ...row, members };
      return { ...row, members, people: row.people?.filter((one) => one !== personId) ?? null };
    }),
    CadenceSet: change((row, rule) => ({ ...row, cadence: withRule(row.cadence ?? [], rule) })),
    NetworkVersionEndReported: unchanged,
    PostingQuotaSet: change((row, { limit }, { revision }) => ({
      ...row,
      posting_quota: limit,
      posting_quota_revision: revision,
    })),
    SandboxClockMoved: unchanged,
  },
});

/** The agency as the API shows it. A sandbox twin has the members of its live workspace: `members` is their count. */
export const renderAgency = (
  row: WorkspaceRow,
  members: number,
  limits: Readonly<Record<string, unknown>>,
  hold: Pick<Hold, 'since'> | null,
) => ({
  id: row.id,
  object: 'agency' as const,
  name: row.name,
  timezone: row.timezone,
  mode: row.mode,
  members,
  publishing: { status: hold === null ? ('on' as const) : ('hold' as const), since: hold?.since ?? null },
  limits,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  revision: row.revision,
});

export const getWorkspace = async (knex: Knex, id: string): Promise<WorkspaceRow | null> => {
  const row = await knex(`${view('workspaces')} as workspaces`)
    .where({ id })
    .first();
  return row === undefined ? null : asRow(workspaces, row);
};

/** The member's role as the read model has it; null when the member left or never was one. */
export const roleOfMember = async (
  pool: Pool,
  workspaceId: string,
  memberId: string,
): Promise<{ readonly role: Role | null; readonly isWithdrawn: boolean }> => {
  const { rows } = await pool.query<{ role: Role | null; is_withdrawn: boolean }>({
    name: 'role-of-member',
    text: `select members -> $2::text ->> 'role' as role,
        ${isWithdrawnSql({ workspace: 'w.id' })} as is_withdrawn
      from ${view('workspaces')} w where id = $1`,
    values: [workspaceId, memberId],
  });
  const [row] = rows;
  return { role: row?.role ?? null, isWithdrawn: row?.is_withdrawn ?? false };
};

export interface LiveWorkspace {
  readonly id: string;
  readonly name: string;
  readonly timezone: string;
  readonly members: WorkspaceRow['members'];
}

/** Of all agencies, oldest first, without their sandbox twins. */
export const listLiveWorkspaces = async (pool: Pool): Promise<readonly LiveWorkspace[]> => {
  const { rows } = await pool.query<LiveWorkspace>(
    `select id::text, name, timezone, members from ${view('workspaces')} as workspaces where mode = 'live' order by created_at, id`,
  );
  return rows;
};

/** The oldest live workspace, and how many keys it has ever had; null where there is none. */
export const firstWorkspace = async (
  pool: Pool,
): Promise<(Omit<LiveWorkspace, 'name'> & { readonly keys: number }) | null> => {
  const { rows } = await pool.query<Omit<LiveWorkspace, 'name'> & { readonly keys: string }>(
    `select w.id::text, w.timezone, w.members, (select count(*) from ${view('api_keys')} k where k.workspace_id = w.id) as keys
     from ${view('workspaces')} w where w.mode = 'live' order by w.created_at, w.id limit 1`,
  );
  const [row] = rows;
  return row === undefined ? null : { ...row, keys: Number(row.keys) };
};

export interface Membership {
  readonly workspaceId: string;
  readonly name: string;
  readonly timezone: string;
  readonly memberId: string;
  readonly role: Role;
}

/** The live workspaces of which a person is a member by the read model, oldest first. */
export const workspacesOfPerson = async (
  pool: Pool,
  personId: string,
): Promise<readonly (Membership & { readonly isWithdrawn: boolean })[]> => {
  const { rows } = await pool.query({
    name: 'workspaces-of-person',
    text: `select w.id::text, w.name, w.timezone, m.key as member_id, m.value ->> 'role' as role,
             ${isWithdrawnSql({ workspace: 'w.id' })} as is_withdrawn
           from ${view('workspaces')} w cross join lateral jsonb_each(w.members) m
           where w.people @> array[$1::text] and m.value ->> 'personId' = $1 order by w.created_at, w.id limit 100`,
    values: [personId],
  });
  return rows.map((row) => ({
    workspaceId: row.id,
    name: row.name,
    timezone: row.timezone,
    memberId: row.member_id,
    role: row.role,
    isWithdrawn: row.is_withdrawn,
  }));
};

import { account } from '#domain/account.ts';
import { client } from '#domain/client.ts';
import { birthOf, Rejection } from '#domain/decider.ts';
import { tenantIdOf } from '#domain/ids.ts';
import { type ReportCommand, report } from '#domain/report.ts';
import { workspace } from '#domain/workspace.ts';
import { newestReports } from '#projections/models/reports.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { platforms } from '#schemas/common.ts';
import { type ReportDefinition, type ReportFormat, reportFormats } from '#schemas/report.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Admin, type CommandOutput, caughtUp, type Given, shown } from './context.ts';
import { idOf, modeOf, workspaceOf } from './find.ts';

/** Saved reports: their definition, their schedule and requested runs. */

const kinds = ['workspace', 'client', 'account'] as const;
const windows = ['last_7_days', 'last_30_days', 'last_90_days', 'last_week', 'last_month'] as const;
const periods = ['day', 'week', 'month'] as const;

const oneOf = <T extends string>(flag: string, text: string, values: readonly T[]): T => {
  const known = values.find((one) => one === text);
  if (known === undefined) throw new UsageError(`${flag} is one of ${values.join(', ')}.`);
  return known;
};
const numberOf = (flag: string, text: string | undefined, low: number, high: number): number | null => {
  if (text === undefined) return null;
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < low || number > high)
    throw new UsageError(`${flag} is a whole number from ${low} to ${high}.`);
  return number;
};
const formatsOf = (text: string | undefined): ReportFormat[] | null =>
  text === undefined ? null : text.split(',').map((one) => oneOf('--formats', one.trim(), reportFormats));

const nameOf = (text: string): string => {
  const name = text.trim();
  if (name === '' || name.length > 200) throw new UsageError('A name has 1 to 200 characters.');
  return name;
};

const scheduleOf = (flag: Given['flag']): ReportDefinition['schedule'] => {
  const [every, hour] = [flag('every'), numberOf('--hour', flag('hour'), 0, 23)];
  const weekday = numberOf('--weekday', flag('weekday'), 1, 7);
  const dayOfMonth = numberOf('--day', flag('day'), 1, 31);
  if (every === undefined) {
    if (hour !== null || weekday !== null || dayOfMonth !== null)
      throw new UsageError('--hour, --weekday and --day are for a report that has --every.');
    return null;
  }
  const period = oneOf('--every', every, periods);
  if ((weekday !== null && period !== 'week') || (dayOfMonth !== null && period !== 'month'))
    throw new UsageError('--weekday goes with --every week, --day with --every month.');
  return {
    every: period,
    weekday: period === 'week' ? (weekday ?? 1) : null,
    dayOfMonth: period === 'month' ? (dayOfMonth ?? 1) : null,
    hour: hour ?? 6,
  };
};

/** The live workspace or its twin. */
const tenantOf = async (admin: Admin, flag: Given['flag']): Promise<string> => {
  const { id } = await workspaceOf(admin, flag('workspace'));
  return tenantIdOf(id, modeOf(flag('mode') ?? 'live'));
};

/**
 * The filters, within this workspace: ids of others are unknown. The client of an account follows from the account, and
 * must match --client.
 */
const filtersOf = async (
  { store }: Admin,
  workspaceId: string,
  flag: Given['flag'],
): Promise<ReportDefinition['filters']> => {
  const [named, socialAccountId] = [flag('client'), flag('account')];
  let clientId = named === undefined ? null : idOf(named, 'client');
  if (socialAccountId !== undefined) {
    const { state, events } = await store.load(account, idOf(socialAccountId, 'account'));
    if (state.status === 'none' || events[0]?.metadata.workspaceId !== workspaceId)
      throw new Rejection('not_found', 'There is no such account in this workspace.');
    if (clientId !== null && clientId !== state.clientId)
      throw new UsageError('The account belongs to another client than --client.');
    clientId = state.clientId;
  }
  if (clientId !== null) {
    const { events } = await store.load(client, clientId);
    if (events[0]?.metadata.workspaceId !== workspaceId)
      throw new Rejection('not_found', 'There is no such client in this workspace.');
  }
  const platform = flag('platform');
  return {
    clientId,
    socialAccountId: socialAccountId === undefined ? null : idOf(socialAccountId, 'account'),
    platform: platform === undefined ? null : oneOf('--platform', platform, platforms),
  };
};

const carryOut = async (admin: Admin, workspaceId: string, id: string, command: ReportCommand) => {
  const { operator, store } = admin;
  const { positions } = operator;
  const done = await execute(store, report, id, command, contextOf(operator, workspaceId), {
    positions,
    guard: ({ revision, events }) => {
      if (revision >= 0 && events[0]?.metadata.workspaceId !== workspaceId)
        throw new Rejection('not_found', 'There is no such report in this workspace: report list shows them.');
    },
  });
  await shown(admin);
  return done;
};

export const defineReport = async (admin: Admin, { flag, has }: Given): Promise<CommandOutput> => {
  const workspaceId = await tenantOf(admin, flag);
  const filters = await filtersOf(admin, workspaceId, flag);
  const meant = filters.socialAccountId !== null ? 'account' : filters.clientId !== null ? 'client' : 'workspace';
  const definition: ReportDefinition = {
    name: nameOf(flag('name') ?? ''),
    kind: oneOf('--kind', flag('kind') ?? meant, kinds),
    filters,
    window: oneOf('--window', flag('window') ?? 'last_30_days', windows),
    formats: formatsOf(flag('formats')) ?? ['pdf', 'csv'],
    schedule: scheduleOf(flag),
    ...(has('no-bom') ? { bom: false } : {}),
  };
  const named = flag('report');
  const reportId = named === undefined ? uuidv7() : idOf(named, 'report');
  // This command makes the id of a new report: a given id must name an existing report.
  if (named !== undefined) await ownerOf(admin, reportId);
  await carryOut(admin, workspaceId, reportId, { type: 'Define', definition });
  const { filters: _, schedule, ...shownMembers } = definition;
  return { reportId, workspaceId, ...shownMembers, ...filters, runs: whenOf(schedule) };
};

const whenOf = (schedule: ReportDefinition['schedule']): string => {
  if (schedule === null) return 'on request';
  const { every, weekday, dayOfMonth, hour } = schedule;
  const on = weekday === null ? (dayOfMonth === null ? '' : ` on the ${dayOfMonth}.`) : ` on weekday ${weekday}`;
  return `every ${every}${on} at ${hour}:00`;
};

/** The workspace of an existing report. */
const ownerOf = async ({ store }: Admin, reportId: string): Promise<string> => {
  const { state, events } = await store.load(report, reportId);
  const first = birthOf(report, events);
  if (state.status !== 'live' || first === undefined)
    throw new Rejection('not_found', 'There is no such report: report list shows them.');
  return first.metadata.workspaceId;
};

const maxListed = 1_000;

export const listReports = async (admin: Admin, { flag }: Given): Promise<CommandOutput> => {
  const workspaceId = await tenantOf(admin, flag);
  await caughtUp(admin);
  const rows = await newestReports(admin.pool, workspaceId, maxListed);
  return rows.map(({ runs: [last], schedule, ...row }) => ({
    ...row,
    runs: whenOf(schedule),
    lastRunId: last?.runId ?? null,
    lastRun: last?.status ?? null,
    asOf: last?.asOf ?? null,
  }));
};

/** The window ends with yesterday in the workspace's zone. */
export const runReport = async (admin: Admin, { at, flag }: Given): Promise<CommandOutput> => {
  const reportId = idOf(at(0), 'report');
  const formats = formatsOf(flag('formats'));
  const workspaceId = await ownerOf(admin, reportId);
  const home = await admin.store.load(workspace, workspaceId);
  if (home.state.status === 'none') throw new Rejection('not_found', 'There is no such workspace.');
  const runId = uuidv7();
  const { timezone } = home.state;
  const now = new Date(admin.operator.clock()).toISOString();
  const command = { type: 'RequestRun', runId, at: now, timezone, by: 'request', formats } as const;
  const { state } = await carryOut(admin, workspaceId, reportId, command);
  const run = state.status === 'none' ? undefined : state.runs.get(runId);
  return { reportId, runId, from: run?.from, to: run?.to, formats: run?.formats };
};

/** The reports process deletes the exports. */
export const removeReport = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const reportId = idOf(at(0), 'report');
  const { state, events } = await admin.store.load(report, reportId);
  const first = birthOf(report, events);
  if (state.status === 'none' || first === undefined)
    throw new Rejection('not_found', 'There is no such report: report list shows them.');
  await carryOut(admin, first.metadata.workspaceId, reportId, { type: 'Remove' });
  return { reportId, removed: true };
};

import { report } from '#domain/report.ts';
import { workspace } from '#domain/workspace.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { type ReportDefinition, reportFormats } from '#schemas/report.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import type { Random } from '#test/support/seed.ts';
import { insist } from './insist.ts';

/** An operator who requests reports. Each has its ids before the request, so that a repeat gives the same report. */

/** The whole workspace by default. */
export interface Subject {
  readonly clientId?: string;
  readonly accountId?: string;
}

const dayMs = 86_400_000;
/** Drawing one keeps a core busy: no further one is requested while so many are open. */
const maxOpen = 3;

export class Desk {
  readonly #operator: Operator;
  readonly #workspaceId: string;
  readonly #random: Random;
  readonly #asked = new Set<string>();

  constructor(operator: Operator, workspaceId: string, random: Random) {
    this.#operator = operator;
    this.#workspaceId = workspaceId;
    this.#random = random;
  }

  readonly make = async (about: Subject, planned: boolean): Promise<void> => {
    await insist(() => this.#forgetEnded());
    if (this.#asked.size >= maxOpen) return;
    const reportId = uuidv7();
    this.#asked.add(reportId);
    const definition = definitionOf(about, this.#random);
    if (planned) await insist(() => this.#plan(reportId, definition));
    else await this.#run(reportId, definition);
  };

  async #run(reportId: string, definition: ReportDefinition): Promise<void> {
    const runId = uuidv7();
    // Includes figures of today, and of a network whose clock is ahead.
    const at = new Date(Date.now() + 3 * dayMs).toISOString();
    await insist(() => this.#tell(reportId, { type: 'Define', definition }));
    await insist(() =>
      this.#tell(reportId, { type: 'RequestRun', runId, at, timezone: 'UTC', by: 'request', formats: null }),
    );
  }

  /** Defined as of two days ago: its hour has come, and comes again in half a day. */
  async #plan(reportId: string, definition: ReportDefinition): Promise<void> {
    const { state } = await this.#operator.store.load(workspace, this.#workspaceId);
    if (state.status === 'none') throw new Error('there is no workspace');
    const hour = hourOf(Date.now() + dayMs / 2, state.timezone);
    const schedule = { every: 'day', weekday: null, dayOfMonth: null, hour } as const;
    await this.#tell(reportId, { type: 'Define', definition: { ...definition, schedule } }, Date.now() - 2 * dayMs);
  }

  async #tell(reportId: string, command: Parameters<typeof report.decide>[0], at = Date.now()): Promise<void> {
    const operator = { ...this.#operator, clock: () => at };
    await execute(operator.store, report, reportId, command, contextOf(operator, this.#workspaceId));
  }

  async #forgetEnded(): Promise<void> {
    for (const id of [...this.#asked]) {
      const { state } = await this.#operator.store.load(report, id);
      const runs = state.status === 'none' ? [] : [...state.runs.values()];
      if (runs.length > 0 && runs.every(({ status }) => status !== 'open')) this.#asked.delete(id);
    }
  }
}

const hourOf = (at: number, timezone: string): number =>
  Number(new Intl.DateTimeFormat('en', { timeZone: timezone, hour: 'numeric', hourCycle: 'h23' }).format(at));

const definitionOf = ({ clientId, accountId }: Subject, random: Random): ReportDefinition => ({
  name: 'Faults',
  kind: accountId !== undefined ? 'account' : clientId !== undefined ? 'client' : 'workspace',
  filters: { clientId: clientId ?? null, socialAccountId: accountId ?? null, platform: null },
  window: 'last_7_days',
  formats: random.shuffle(reportFormats).slice(0, random.int(1, reportFormats.length)),
  schedule: null,
});

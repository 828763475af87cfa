import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { type CommandContext, type DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { installationId } from './emails.ts';
import type { Mailer } from './mail.ts';

/** What the side of persons uses. */
export interface PeopleDeps {
  readonly store: DomainStore;
  readonly pool: Pool;
  readonly secrets: Secrets;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Absent or null: an operator delivers links, and nothing waits for the proof of an address. */
  readonly mailer?: Mailer | null;
}

export const nowOf = ({ clock }: Pick<PeopleDeps, 'clock'>): string => new Date(clock()).toISOString();

/** For the streams of a person, which belong to no workspace. */
export const personContext = (
  deps: Pick<PeopleDeps, 'clock'>,
  personId: string,
  correlationId: string = uuidv7(),
): CommandContext => ({
  workspaceId: installationId,
  actor: { type: 'person', id: personId },
  correlationId,
  causationId: correlationId,
  commandId: uuidv7(),
  now: nowOf(deps),
});

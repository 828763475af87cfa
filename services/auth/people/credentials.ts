import type { Pool } from 'pg';
import type { Secrets } from '#runtime/identity/secrets.ts';
import type { SessionEnd } from '#schemas/person.ts';
import { box, unbox } from '../box.ts';
import { emailMac } from './emails.ts';

/** The row of a person: what signs the person in. */

export interface PersonCredentials {
  readonly personId: string;
  readonly passwordHash: string | null;
  /** Null: none, or one whose key is gone. */
  readonly totpSecret: Buffer | null;
  /** Whether the person has proved that a device shows the codes. */
  readonly totpConfirmed: boolean;
  /** The step of the last code that was used. */
  readonly totpStep: number;
  readonly recoveryMacs: readonly Buffer[];
  readonly recoveryVersion: string | null;
}

const placeOf = (personId: string): string => `second factor\n${personId}`;

interface Row {
  readonly person_id: string;
  readonly password_hash: string | null;
  readonly totp_secret: Buffer | null;
  readonly totp_version: string | null;
  readonly totp_step: string | null;
  readonly totp_confirmed: boolean;
  readonly recovery_macs: readonly Buffer[];
  readonly recovery_version: string | null;
}

const columns =
  'person_id::text, password_hash, totp_secret, totp_version, totp_step::text, totp_confirmed, recovery_macs, recovery_version';

export class People {
  readonly #pool: Pool;
  readonly #secrets: Secrets;

  constructor(pool: Pool, secrets: Secrets) {
    this.#pool = pool;
    this.#secrets = secrets;
  }

  /** @throws MissingKey where SECRET_KEY lacks the version that seals the second factor */
  #read(row: Row | undefined): PersonCredentials | null {
    if (row === undefined) return null;
    const { person_id: personId, totp_secret: sealed, totp_version: version } = row;
    return {
      personId,
      passwordHash: row.password_hash,
      totpSecret:
        sealed === null || version === null
          ? null
          : Buffer.from(unbox(this.#secrets, 'second-factors', placeOf(personId), { version, sealed }), 'base64'),
      totpConfirmed: row.totp_confirmed,
      totpStep: Number(row.totp_step ?? -1),
      recoveryMacs: row.recovery_macs,
      recoveryVersion: row.recovery_version,
    };
  }

  /** @param email normalised */
  async byEmail(email: string): Promise<PersonCredentials | null> {
    const { rows } = await this.#pool.query<Row>(`select ${columns} from auth.people where email_mac = $1`, [
      emailMac(this.#secrets, email),
    ]);
    return this.#read(rows[0]);
  }

  async byId(personId: string): Promise<PersonCredentials | null> {
    const { rows } = await this.#pool.query<Row>(`select ${columns} from auth.people where person_id = $1`, [personId]);
    return this.#read(rows[0]);
  }

  /** Keeps a row that is there: only the registration that the stream accepted writes it. @param email normalised */
  async create(personId: string, email: string, passwordHash: string): Promise<void> {
    await this.#pool.query(
      `insert into auth.people (person_id, email_mac, mac_version, password_hash) values ($1, $2, $3, $4)
       on conflict do nothing`,
      [personId, emailMac(this.#secrets, email), this.#secrets.oldest, passwordHash],
    );
  }

  /**
   * Ends every session but one and every link with it, in one statement: whoever came in by the former password is out
   * once the new one holds, also if we die then.
   * @param keep id of the session that stays
   * @returns ids of the sessions that ended; no event tells of their ends yet
   */
  async setPassword(
    personId: string,
    passwordHash: string,
    { keep, now, reason }: { readonly keep: string | null; readonly now: string; readonly reason: SessionEnd },
  ): Promise<readonly string[]> {
    const { rows } = await this.#pool.query<{ id: string }>(
      `with password as (update auth.people set password_hash = $2 where person_id = $1),
         links as (delete from auth.person_links where person_id = $1)
       update auth.sessions set ended_at = $3, end_reason = $4
       where person_id = $1 and ended_at is null and id is distinct from $5::uuid returning id::text`,
      [personId, passwordHash, now, reason, keep],
    );
    return rows.map(({ id }) => id);
  }

  /** A secret that is not confirmed yet asks for no code at sign-in. */
  async offerTotp(personId: string, secret: Buffer): Promise<void> {
    const { version, sealed } = box(this.#secrets, 'second-factors', placeOf(personId), secret.toString('base64'));
    await this.#pool.query(
      `update auth.people set totp_secret = $2, totp_version = $3, totp_step = null, totp_confirmed = false
       where person_id = $1 and not totp_confirmed`,
      [personId, sealed, version],
    );
  }

  /** Spends a step: false where it, or a later one, was spent already. Two sign-ins with one code cannot both pass. */
  async spendTotp(personId: string, step: number): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      'update auth.people set totp_step = $2 where person_id = $1 and (totp_step is null or totp_step < $2)',
      [personId, step],
    );
    return rowCount === 1;
  }

  async confirmTotp(personId: string): Promise<void> {
    await this.#pool.query(
      'update auth.people set totp_confirmed = true where person_id = $1 and totp_secret is not null',
      [personId],
    );
  }

  async removeTotp(personId: string): Promise<void> {
    await this.#pool.query(
      `update auth.people set totp_secret = null, totp_version = null, totp_step = null, totp_confirmed = false,
         recovery_macs = '{}', recovery_version = null where person_id = $1`,
      [personId],
    );
  }

  async setRecoveryCodes(personId: string, macs: readonly Buffer[], version: string): Promise<void> {
    await this.#pool.query('update auth.people set recovery_macs = $2, recovery_version = $3 where person_id = $1', [
      personId,
      macs,
      version,
    ]);
  }

  /** False where the person has no such code, or no longer has it. */
  async spendRecoveryCode(personId: string, mac: Buffer): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      `update auth.people set recovery_macs = array_remove(recovery_macs, $2::bytea)
       where person_id = $1 and $2::bytea = any(recovery_macs)`,
      [personId, mac],
    );
    return rowCount === 1;
  }

  async remove(personId: string): Promise<void> {
    await this.#pool.query('delete from auth.people where person_id = $1', [personId]);
  }
}

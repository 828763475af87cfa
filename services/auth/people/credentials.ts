import type { Pool } from 'pg';
import type { RemovedWays } from '#domain/person.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
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
  /**
   * Grows whenever what is older ends: a new password, a proof of the address. What a request began before is committed
   * in the era that it saw, or not at all: it could otherwise outlive what ended it.
   */
  readonly era: number;
}

/** The present era of a person; that of the first where there is no row. */
export const eraOf = async (pool: Pool, personId: string): Promise<number> => {
  const { rows } = await pool.query<{ era: number }>('select era from auth.people where person_id = $1', [personId]);
  return rows[0]?.era ?? 0;
};

/** What ends older ways in. */
export interface Renewal {
  /** The era in which the person proved the former password; null: a link gives the right, whatever the era is. */
  readonly era: number | null;
  /** Null: the password stays. */
  readonly passwordHash: string | null;
  readonly removes: RemovedWays;
  /** Id of the session that stays; null: none does. */
  readonly keep: string | null;
  /** ISO 8601. */
  readonly now: string;
  readonly reason: SessionEnd;
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
  readonly era: number;
}

const columns =
  'person_id::text, password_hash, totp_secret, totp_version, totp_step::text, totp_confirmed, recovery_macs, recovery_version, era';

const noTotp = `totp_secret = null, totp_version = null, totp_step = null, totp_confirmed = false,
  recovery_macs = '{}', recovery_version = null`;

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
      era: row.era,
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
   * Ends every session but one, every link, and the ways in that are to go, in one transaction: a person who came in
   * by them is out once it commits, also after a crash. The row of the person is locked first: a passkey or a session that
   * was on its way is either here by then, and goes, or finds another era.
   * @returns ids of the sessions that ended, of which no event tells yet; null where the era has ended: nothing was done
   */
  renew(
    personId: string,
    { era, passwordHash, removes, keep, now, reason }: Renewal,
  ): Promise<readonly string[] | null> {
    const work = async (tx: Pick<Pool, 'query'>) => {
      const { rowCount } = await tx.query(
        `update auth.people set era = era + 1, password_hash = coalesce($2, password_hash)
         ${removes.secondFactor ? `, ${noTotp}` : ''} where person_id = $1 and era = coalesce($3, era)`,
        [personId, passwordHash, era],
      );
      if (rowCount !== 1) return { commit: false, result: null };
      if (removes.passkeys) await tx.query('delete from auth.passkeys where person_id = $1', [personId]);
      await tx.query('delete from auth.person_links where person_id = $1', [personId]);
      const { rows } = await tx.query<{ id: string }>(
        `update auth.sessions set ended_at = $2, end_reason = $3
         where person_id = $1 and ended_at is null and id is distinct from $4::uuid returning id::text`,
        [personId, now, reason, keep],
      );
      return { commit: true, result: rows.map(({ id }) => id) };
    };
    return inTransaction(this.#pool, work, 'begin');
  }

  /** A secret that is not confirmed yet asks for no code at sign-in. */
  async offerTotp({ personId, era }: PersonCredentials, secret: Buffer): Promise<void> {
    const { version, sealed } = box(this.#secrets, 'second-factors', placeOf(personId), secret.toString('base64'));
    await this.#pool.query(
      `update auth.people set totp_secret = $2, totp_version = $3, totp_step = null, totp_confirmed = false
       where person_id = $1 and not totp_confirmed and era = $4`,
      [personId, sealed, version, era],
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

  /** False where the offer ended meanwhile. */
  async confirmTotp({ personId, era }: PersonCredentials): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      'update auth.people set totp_confirmed = true where person_id = $1 and totp_secret is not null and era = $2',
      [personId, era],
    );
    return rowCount === 1;
  }

  async removeTotp(personId: string): Promise<void> {
    await this.#pool.query(`update auth.people set ${noTotp} where person_id = $1`, [personId]);
  }

  /** False where the era of the person has ended. */
  async setRecoveryCodes(
    { personId, era }: PersonCredentials,
    macs: readonly Buffer[],
    version: string,
  ): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      'update auth.people set recovery_macs = $2, recovery_version = $3 where person_id = $1 and era = $4',
      [personId, macs, version, era],
    );
    return rowCount === 1;
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

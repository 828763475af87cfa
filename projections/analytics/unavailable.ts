import { ClickHouseError } from '@clickhouse/client';
import { Unavailable } from '#runtime/eventing/domain-store.ts';

/**
 * Errors of ClickHouse that are temporary: it is down, or refuses work that it would take at another time. Every other
 * error is a fault of ours.
 */

const passing: ReadonlySet<string> = new Set([
  '81', // UNKNOWN_DATABASE: the operator has not created it yet
  '159', // TIMEOUT_EXCEEDED
  '160', // TOO_SLOW
  '202', // TOO_MANY_SIMULTANEOUS_QUERIES
  '203', // NO_FREE_CONNECTION
  '209', // SOCKET_TIMEOUT
  '210', // NETWORK_ERROR
  '236', // ABORTED: it is shutting down
  '241', // MEMORY_LIMIT_EXCEEDED
  '242', // TABLE_IS_READ_ONLY
  '243', // NOT_ENOUGH_SPACE
  '252', // TOO_MANY_PARTS
  '319', // UNKNOWN_STATUS_OF_INSERT
  '394', // QUERY_WAS_CANCELLED
  '425', // SYSTEM_ERROR
  '439', // CANNOT_SCHEDULE_TASK
  '516', // AUTHENTICATION_FAILED: the password is being changed
  '999', // KEEPER_EXCEPTION
  '1002', // UNKNOWN_EXCEPTION
]);

/** A table that the query names is not there. */
export const isUnknownTable = (error: unknown): boolean => error instanceof ClickHouseError && error.code === '60';

/** Runs a call of ClickHouse. @throws Unavailable in place of temporary errors */
export const callClickHouse = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (
      error instanceof TypeError ||
      error instanceof RangeError ||
      (error instanceof ClickHouseError && !passing.has(error.code))
    )
      throw error;
    const why = error instanceof ClickHouseError ? error.type || error.code : codeOf(error);
    throw new Unavailable(`ClickHouse is unavailable: ${why}`, { cause: error });
  }
};

const codeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error ? String(error.code) : error.message;
};

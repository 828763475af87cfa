import { Pool } from 'pg';
import { migrate } from '#projections/engine/tables.ts';
import { preparedDatabase } from './postgres.ts';
import { afterFile } from './suite.ts';

/** A pool on a new database with the tables of the read models. It ends after the file's last test. */
export const readModelsPool = async (max = 4): Promise<Pool> => {
  const { url } = await preparedDatabase();
  const pool = new Pool({ connectionString: url, max });
  afterFile(() => pool.end());
  await migrate(pool);
  return pool;
};

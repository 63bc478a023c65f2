//! rkyv: one archive for each event, which is validated and read in place.

use access_bench::{Checksum, Result, events, messages};
use rkyv::rancor::Error;
use rkyv::util::AlignedVec;

access_bench::records!(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize);

fn main() -> Result<()> {
    access_bench::run(write, read, None)
}

fn write(file: &str, count: u64) -> Result<()> {
    messages::write(file, events(count).map(Access::from), |event, out| {
        *out = rkyv::api::high::to_bytes_in::<_, Error>(&event, std::mem::take(out))?;
        Ok(())
    })
}

fn read(file: &str, checksum: &mut Checksum) -> Result<()> {
    let mut aligned = AlignedVec::<16>::new();
    messages::read(file, |message| {
        aligned.clear();
        aligned.extend_from_slice(message);
        let x = rkyv::access::<ArchivedAccess, Error>(&aligned)?;
        let [method, status, flags, took_us, bytes_out] =
            [x.method, x.status, x.flags, x.took_us, x.bytes_out].map(|number| u64::from(number.to_native()));
        let user = x.user.as_ref().map_or(0, |user| user.to_native().into());
        let numbers = [x.time.into(), x.request_id.into(), method, status, flags, user, took_us, bytes_out];
        checksum.event(numbers, x.score.into(), x.path.as_bytes());
        x.spans.iter().for_each(|x| {
            checksum.span(x.kind.to_native().into(), x.offset_us.to_native().into(), x.dur_us.to_native().into());
        });
        Ok(())
    })
}

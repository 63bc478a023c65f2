//! The machine code of the recorder's object: its functions, their calls and their stack usage.
//!
//! Nothing is guessed: code that no function covers, a stack pointer that cannot be followed, and a call through a
//! register with an unknown target are all reported.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget, SymbolKind};

/// The target of a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// A function of the object, by its address.
    Own(u64),
    /// A function of another object.
    Import(String),
    /// The function whose address is in a variable of the object.
    Variable(String),
    /// The function whose address is in a register.
    Unknown,
}

/// A call, or a jump to another function.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) target: Target,
    /// Bytes of the caller's frame at the call, including the return address that the call adds.
    pub(crate) depth: u64,
}

#[derive(Debug)]
pub(crate) struct Function {
    /// The name without the hash that the compiler adds.
    pub(crate) name: String,
    pub(crate) calls: Vec<Call>,
    /// Maximum size of its own frame in bytes, without its return address.
    pub(crate) frame: u64,
    /// The reason why the frame size is unknown.
    pub(crate) unclear: Option<String>,
}

/// The code of the object.
pub(crate) struct ObjectCode {
    pub(crate) functions: BTreeMap<u64, Function>,
    /// Exported functions, by name.
    pub(crate) exports: BTreeMap<String, u64>,
    /// Ranges of code that belong to no function.
    pub(crate) uncovered: Vec<(u64, u64)>,
}

fn short(name: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(name));
    name.replace("hatf_record::preload::", "").replace("hatf_record::", "")
}

/// Contents of the addresses from which code reads function addresses.
struct Slots {
    /// Slots filled by the dynamic linker.
    filled: HashMap<u64, Target>,
    /// Variables of one word, by address.
    variables: BTreeMap<u64, String>,
    /// Start addresses of functions.
    functions: BTreeSet<u64>,
}

impl Slots {
    fn at(&self, address: u64) -> Target {
        if let Some(target) = self.filled.get(&address) {
            return target.clone();
        }
        self.variables.get(&address).map_or(Target::Unknown, |name| Target::Variable(name.clone()))
    }
}

impl ObjectCode {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let file = object::File::parse(bytes).unwrap();
        let (mut places, mut exports, mut variables) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            match symbol.kind() {
                SymbolKind::Text if symbol.is_definition() => {
                    let place = places.entry(symbol.address()).or_insert((symbol.size(), short(name)));
                    place.0 = place.0.max(symbol.size());
                }
                SymbolKind::Data if symbol.size() == 8 => {
                    variables.insert(symbol.address(), short(name));
                }
                _ => {}
            }
        }
        for symbol in
            file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        {
            exports.insert(symbol.name().unwrap().to_owned(), symbol.address());
        }
        // Functions in the C compiler's start-up files have no length.
        let starts: Vec<u64> = places.keys().copied().collect();
        for pair in starts.windows(2) {
            if places[&pair[0]].0 == 0 {
                places.get_mut(&pair[0]).unwrap().0 = pair[1] - pair[0];
            }
        }
        let mut filled = HashMap::new();
        let dynamic: HashMap<_, _> =
            file.dynamic_symbols().map(|symbol| (symbol.index(), symbol.name().unwrap().to_owned())).collect();
        for (place, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let target = match (relocation.target(), relocation.flags()) {
                (RelocationTarget::Symbol(symbol), _) => dynamic.get(&symbol).map(|name| match exports.get(name) {
                    Some(own) => Target::Own(*own),
                    None => Target::Import(name.clone()),
                }),
                (_, RelocationFlags::Elf { r_type: object::elf::R_X86_64_RELATIVE }) => {
                    Some(Target::Own(relocation.addend().cast_unsigned()))
                }
                _ => None,
            };
            if let Some(target) = target {
                filled.insert(place, target);
            }
        }
        filled.retain(|_, target| match target {
            Target::Own(address) => places.contains_key(address),
            _ => true,
        });
        let slots = Slots { filled, variables, functions: places.keys().copied().collect() };
        let mut functions = BTreeMap::new();
        let mut uncovered = Vec::new();
        for section in file.sections().filter(|section| section.kind() == object::SectionKind::Text) {
            let (start, data) = (section.address(), section.data().unwrap());
            if section.name() == Ok(".plt") || section.name() == Ok(".plt.got") || section.name() == Ok(".plt.sec") {
                stubs(start, data, &slots, &mut functions);
                continue;
            }
            let end = start + data.len() as u64;
            let mut covered = start;
            for (address, (size, name)) in places.range(start..end) {
                if *address > covered && !is_padding(&data[at(covered - start)..at(address - start)]) {
                    uncovered.push((covered, *address));
                }
                let after = end.min(address + size);
                covered = covered.max(after);
                let code = &data[at(address - start)..at(after - start)];
                functions.insert(*address, decode(name, *address, code, &slots, &places));
            }
            if covered < end
                && !is_padding(&data[at(covered - start)..])
                && !matches!(section.name(), Ok(".init" | ".fini"))
            {
                uncovered.push((covered, end));
            }
        }
        Self { functions, exports, uncovered }
    }

    /// Returns the functions of this name. A generic function may have one for each type.
    pub(crate) fn named(&self, name: &str) -> Vec<u64> {
        self.functions.iter().filter(|(_, function)| function.name == name).map(|(address, _)| *address).collect()
    }

    /// Visits a function and all functions of the object that it reaches, with a path to each. Functions in `stops` are
    /// visited but not followed.
    pub(crate) fn reach(&self, from: u64, stops: impl Fn(&str) -> bool, mut visit: impl FnMut(&Function, &[&str])) {
        let (mut seen, mut todo) = (BTreeSet::from([from]), vec![(from, Vec::new())]);
        while let Some((address, mut path)) = todo.pop() {
            let Some(function) = self.functions.get(&address) else { continue };
            path.push(&*function.name);
            visit(function, &path);
            if stops(&function.name) {
                continue;
            }
            for call in &function.calls {
                if let Target::Own(target) = call.target
                    && seen.insert(target)
                {
                    todo.push((target, path.clone()));
                }
            }
        }
    }

    /// Returns the maximum bytes of stack of a function, including the functions of the object that it calls, and the
    /// path with that maximum. Functions in `left_out` do not count, and a recursive function counts once.
    pub(crate) fn deepest(&self, from: u64, left_out: &impl Fn(&str) -> bool) -> (u64, Vec<&str>) {
        self.deepest_on(from, left_out, &mut Vec::new(), &mut HashMap::new())
    }

    fn deepest_on<'c>(
        &'c self,
        from: u64,
        left_out: &impl Fn(&str) -> bool,
        on: &mut Vec<u64>,
        known: &mut HashMap<u64, (u64, Vec<&'c str>)>,
    ) -> (u64, Vec<&'c str>) {
        if let Some(known) = known.get(&from) {
            return known.clone();
        }
        let function = self.functions.get(&from).filter(|function| !on.contains(&from) && !left_out(&function.name));
        let Some(function) = function else { return (0, Vec::new()) };
        on.push(from);
        let mut deepest = (function.frame, vec![&*function.name]);
        for call in &function.calls {
            if let Target::Own(target) = call.target {
                let (bytes, mut path) = self.deepest_on(target, left_out, on, known);
                if call.depth + bytes > deepest.0 {
                    path.insert(0, &function.name);
                    deepest = (call.depth + bytes, path);
                }
            }
        }
        on.pop();
        known.insert(from, deepest.clone());
        deepest
    }
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

/// Returns whether bytes between functions are alignment padding.
fn is_padding(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    decoder.iter().all(|instruction| {
        matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) || instruction.code() == Code::INVALID
    }) || bytes.iter().all(|byte| *byte == 0)
}

/// Adds the stubs that call imported functions.
fn stubs(start: u64, data: &[u8], slots: &Slots, functions: &mut BTreeMap<u64, Function>) {
    let instructions: Vec<_> = Decoder::with_ip(64, data, start, DecoderOptions::NONE).iter().collect();
    for instruction in instructions {
        if instruction.flow_control() == FlowControl::IndirectBranch && instruction.is_ip_rel_memory_operand() {
            let target = slots.at(instruction.ip_rel_memory_address());
            let Target::Import(name) = &target else { continue };
            let function = Function {
                name: format!("{name}@plt"),
                calls: vec![Call { target: target.clone(), depth: 0 }],
                frame: 0,
                unclear: None,
            };
            functions.insert(instruction.ip(), function);
            // The stub may begin with a marker for indirect branches.
            functions.insert(
                instruction.ip() - 4,
                Function {
                    name: format!("{name}@plt"),
                    calls: vec![Call { target, depth: 0 }],
                    frame: 0,
                    unclear: None,
                },
            );
        }
    }
}

/// The state before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    /// Bytes below the return address.
    rsp: u64,
    /// Bytes below the return address at the frame pointer, if there is one.
    rbp: Option<u64>,
    /// Depth down to which a large frame is touched page by page.
    probe: Option<u64>,
    /// Functions to which a register, or a word of the frame by its depth, may lead. Missing ones may lead anywhere.
    known: BTreeMap<Place, Targets>,
}

/// Functions to which a value may lead.
type Targets = Rc<BTreeSet<Target>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Register(u32),
    Frame(u64),
}

impl State {
    const fn new(rsp: u64) -> Self {
        Self { rsp, rbp: None, probe: None, known: BTreeMap::new() }
    }

    /// Joins the state of another path to the same instruction. Returns whether anything changed.
    fn join(&mut self, other: &Self) -> bool {
        let before = (self.rsp, self.rbp, self.probe, self.known.len());
        let mut has_more = false;
        self.rsp = self.rsp.max(other.rsp);
        self.rbp = self.rbp.filter(|_| self.rbp == other.rbp);
        self.probe = self.probe.max(other.probe);
        self.known.retain(|place, _| other.known.contains_key(place));
        for (place, targets) in &mut self.known {
            let theirs = &other.known[place];
            if !Rc::ptr_eq(targets, theirs) && !theirs.is_subset(targets) {
                *targets = Rc::new(targets.union(theirs).cloned().collect());
                has_more = true;
            }
        }
        has_more || (self.rsp, self.rbp, self.probe, self.known.len()) != before
    }

    fn register(register: Register) -> Place {
        Place::Register(register.full_register() as u32)
    }

    /// Returns the frame word that is the operand.
    fn word(&self, instruction: &Instruction) -> Option<Place> {
        let is_plain = instruction.memory_index() == Register::None && instruction.memory_base() == Register::RSP;
        let by = instruction.memory_displacement64().cast_signed();
        is_plain.then(|| Place::Frame(self.rsp.wrapping_add_signed(-by)))
    }

    /// Returns the functions to which an operand may lead.
    fn operand(&self, instruction: &Instruction, number: u32, slots: &Slots) -> Option<Targets> {
        match instruction.op_kind(number) {
            OpKind::Register => self.known.get(&Self::register(instruction.op_register(number))).cloned(),
            OpKind::Memory if instruction.is_ip_rel_memory_operand() => {
                match slots.at(instruction.ip_rel_memory_address()) {
                    Target::Unknown => None,
                    target => Some(Rc::new([target].into())),
                }
            }
            OpKind::Memory => self.known.get(&self.word(instruction)?).cloned(),
            _ => None,
        }
    }

    fn set(&mut self, place: Place, targets: Option<Targets>) {
        match targets {
            Some(targets) => drop(self.known.insert(place, targets)),
            None => drop(self.known.remove(&place)),
        }
    }
}

/// Maximum number of times that the frame at an instruction may grow.
const VISITS: u32 = 20;

fn decode(name: &str, start: u64, code: &[u8], slots: &Slots, places: &BTreeMap<u64, (u64, String)>) -> Function {
    let end = start + code.len() as u64;
    let instructions: Vec<Instruction> = Decoder::with_ip(64, code, start, DecoderOptions::NONE).iter().collect();
    let number: HashMap<u64, usize> =
        instructions.iter().enumerate().map(|(number, instruction)| (instruction.ip(), number)).collect();
    let mut function = Function { name: name.to_owned(), calls: Vec::new(), frame: 0, unclear: None };
    let inside = |target: u64| (start..end).contains(&target);
    let mut states: Vec<Option<State>> = vec![None; instructions.len()];
    let mut visits = vec![0; instructions.len()];
    states[0] = Some(State::new(0));
    // In order, so that most of the paths to an instruction are known when it is examined.
    let mut todo: BTreeSet<usize> = [0].into();
    // Jump tables are not read. Code that nothing else reaches is entered with the frame at the jump.
    let mut tables: Vec<u64> = Vec::new();
    loop {
        while let Some(at) = todo.pop_first() {
            let (Some(instruction), Some(state)) = (instructions.get(at), states[at].clone()) else { continue };
            let (after, problem) = step(instruction, &state, slots);
            if let Some(problem) = problem {
                function.unclear.get_or_insert(format!("{problem} at {:x}", instruction.ip()));
            }
            let mut next = Vec::new();
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::Interrupt | FlowControl::Call | FlowControl::IndirectCall => {
                    // Assembly code calls parts of itself.
                    let part = number.get(&instruction.near_branch_target()).filter(|part| **part != 0);
                    if let (FlowControl::Call, Some(part)) = (instruction.flow_control(), part) {
                        next.push((*part, State { rsp: after.rsp + 8, ..after.clone() }));
                    }
                    next.push((at + 1, after));
                }
                FlowControl::ConditionalBranch if state.probe.is_some() && is_probe(&instructions, at) => {
                    next.push((at + 1, State { rsp: state.probe.unwrap_or_default(), probe: None, ..after }));
                }
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
                    if let Some(target) = number.get(&instruction.near_branch_target()) {
                        next.push((*target, after.clone()));
                    }
                    if instruction.flow_control() == FlowControl::ConditionalBranch {
                        next.push((at + 1, after));
                    }
                }
                FlowControl::IndirectBranch if is_jump_table(&instructions, at) => tables.push(after.rsp),
                _ => {}
            }
            for (at, state) in next.into_iter().filter(|(at, _)| *at < instructions.len()) {
                let deeper = states[at].as_ref().is_some_and(|known| known.rsp < state.rsp);
                // Code after a call that does not return seems to be reached from the call. The larger frame counts.
                visits[at] += u32::from(deeper);
                if visits[at] > VISITS {
                    let problem = format!("a loop that takes ever more of the stack, at {:x}", instructions[at].ip());
                    function.unclear.get_or_insert(problem);
                    continue;
                }
                let is_new = match &mut states[at] {
                    Some(known) => known.join(&state),
                    place @ None => {
                        *place = Some(state);
                        true
                    }
                };
                if is_new {
                    todo.insert(at);
                }
            }
        }
        // Code that is reached only through a jump table.
        let is_code = |at: &usize| {
            states[*at].is_none()
                && !matches!(instructions[*at].mnemonic(), Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::Ud2)
        };
        let Some(at) = (0..instructions.len()).find(is_code) else { break };
        match tables.iter().max() {
            Some(rsp) => {
                states[at] = Some(State::new(*rsp));
                todo.insert(at);
            }
            None => {
                function.unclear.get_or_insert(format!("nothing leads to {:x}", instructions[at].ip()));
                break;
            }
        }
    }
    for (at, instruction) in instructions.iter().enumerate() {
        let Some(state) = &states[at] else { continue };
        function.frame = function.frame.max(step(instruction, state, slots).0.rsp);
        let (targets, depth) = match instruction.flow_control() {
            FlowControl::Call => (Some(Rc::new([Target::Own(instruction.near_branch_target())].into())), state.rsp + 8),
            FlowControl::IndirectCall if instruction.mnemonic() == Mnemonic::Call => {
                (state.operand(instruction, 0, slots), state.rsp + 8)
            }
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
                if !inside(instruction.near_branch_target()) =>
            {
                (Some(Rc::new([Target::Own(instruction.near_branch_target())].into())), state.rsp)
            }
            FlowControl::IndirectBranch if !is_jump_table(&instructions, at) => {
                (state.operand(instruction, 0, slots), state.rsp)
            }
            _ => continue,
        };
        let targets = targets.unwrap_or_else(|| Rc::new([Target::Unknown].into()));
        function.calls.extend(targets.iter().map(|target| Call { target: target.clone(), depth }));
    }
    function.calls.retain(|call| match call.target {
        Target::Own(target) => !inside(target) || target == start,
        _ => true,
    });
    for call in &function.calls {
        if let Target::Own(target) = call.target
            && !places.contains_key(&target)
            && !slots.filled.is_empty()
            && function.unclear.is_none()
            && places.range(..=target).next_back().is_some_and(|(from, (size, _))| target < from + size)
        {
            function.unclear = Some(format!("a jump into the middle of a function, to {target:x}"));
        }
    }
    function
}

/// Returns the state after an instruction, and the reason if the stack pointer becomes unknown.
fn step(instruction: &Instruction, state: &State, slots: &Slots) -> (State, Option<&'static str>) {
    let mut after = state.clone();
    let written = |number| {
        let to = instruction.op_count() > number && instruction.op_kind(number) == OpKind::Register;
        to.then(|| instruction.op_register(number).full_register())
    };
    let is_read = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push | Mnemonic::Bt);
    let to = written(0).filter(|_| !is_read);
    // Set the new value of the register or of the word.
    match instruction.mnemonic() {
        Mnemonic::Mov if instruction.op0_kind() == OpKind::Memory => {
            if let Some(word) = state.word(instruction) {
                after.set(word, state.operand(instruction, 1, slots));
            }
        }
        Mnemonic::Mov => {
            if let Some(to) = to {
                after.set(State::register(to), state.operand(instruction, 1, slots));
            }
        }
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
            let address = Target::Own(instruction.ip_rel_memory_address());
            let leads = slots.functions.contains(&instruction.ip_rel_memory_address());
            after.set(State::register(instruction.op0_register()), leads.then(|| Rc::new([address].into())));
        }
        Mnemonic::Cmove | Mnemonic::Cmovne | Mnemonic::Cmovb | Mnemonic::Cmovae => {
            if let Some(to) = to {
                let both = state.operand(instruction, 0, slots).zip(state.operand(instruction, 1, slots));
                after.set(
                    State::register(to),
                    both.map(|(first, second)| Rc::new(first.union(&second).cloned().collect())),
                );
            }
        }
        Mnemonic::Xchg
        | Mnemonic::Xadd
        | Mnemonic::Cmpxchg
        | Mnemonic::Mul
        | Mnemonic::Div
        | Mnemonic::Idiv
        | Mnemonic::Cpuid
        | Mnemonic::Rdtsc
        | Mnemonic::Rdtscp => {
            for register in [Register::RAX, Register::RDX, Register::RCX, Register::RBX] {
                after.set(State::register(register), None);
            }
            for register in [written(0), written(1)].into_iter().flatten() {
                after.set(State::register(register), None);
            }
        }
        Mnemonic::Syscall => {
            for register in [Register::RAX, Register::RCX, Register::R11] {
                after.set(State::register(register), None);
            }
        }
        Mnemonic::Call => {
            let kept = [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];
            let kept = kept.map(State::register);
            after.known.retain(|place, _| matches!(place, Place::Frame(_)) || kept.contains(place));
        }
        _ => {
            if let Some(to) = to {
                after.set(State::register(to), None);
            }
        }
    }
    let State { rsp, rbp, .. } = *state;
    let by = instruction.memory_displacement64().cast_signed();
    let (to_rsp, to_rbp) = (to == Some(Register::RSP), to == Some(Register::RBP));
    let from = |register| {
        instruction.op_count() > 1
            && instruction.op1_kind() == OpKind::Register
            && instruction.op1_register() == register
    };
    let is_number = matches!(
        instruction.op_count().checked_sub(1).map(|last| instruction.op_kind(last)),
        Some(OpKind::Immediate8to64 | OpKind::Immediate32to64)
    );
    let moved = match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Pushfq => Some(rsp + 8),
        Mnemonic::Pop | Mnemonic::Popfq if to_rsp => None,
        Mnemonic::Pop | Mnemonic::Popfq => Some(rsp.saturating_sub(8)),
        Mnemonic::Sub if to_rsp && is_number => Some(rsp.saturating_add_signed(instruction.immediate(1).cast_signed())),
        Mnemonic::Add if to_rsp && is_number => {
            Some(rsp.saturating_add_signed(-instruction.immediate(1).cast_signed()))
        }
        Mnemonic::And if to_rsp && is_number => {
            let bytes = instruction.immediate(1).wrapping_neg();
            bytes.is_power_of_two().then(|| rsp + bytes - 1)
        }
        Mnemonic::Lea if to_rsp && instruction.memory_index() == Register::None => match instruction.memory_base() {
            Register::RSP => Some(rsp.saturating_add_signed(-by)),
            Register::RBP => rbp.map(|rbp| rbp.saturating_add_signed(-by)),
            _ => None,
        },
        Mnemonic::Mov if to_rsp && from(Register::RBP) => rbp,
        Mnemonic::Leave => rbp.map(|rbp| rbp.saturating_sub(8)),
        _ if to_rsp => None,
        _ => Some(rsp),
    };
    after.rsp = moved.unwrap_or(rsp);
    if to_rbp || instruction.mnemonic() == Mnemonic::Leave {
        after.rbp = (instruction.mnemonic() == Mnemonic::Mov && from(Register::RSP)).then_some(rsp);
    }
    if to == Some(Register::R11) && instruction.mnemonic() == Mnemonic::Mov && from(Register::RSP) {
        after.probe = Some(rsp);
    }
    if to == Some(Register::R11) && instruction.mnemonic() == Mnemonic::Sub && is_number {
        after.probe = state.probe.map(|probe| probe.saturating_add_signed(instruction.immediate(1).cast_signed()));
    }
    if instruction.mnemonic() == Mnemonic::Lea
        && to == Some(Register::R11)
        && instruction.memory_base() == Register::RSP
        && by < 0
    {
        after.probe = Some(rsp.saturating_add_signed(-by));
    }
    (after, moved.is_none().then_some("a change of the stack pointer"))
}

/// Returns whether a jump returns to touch the next page of a large frame.
fn is_probe(instructions: &[Instruction], at: usize) -> bool {
    at.checked_sub(1).and_then(|before| instructions.get(before)).is_some_and(|before| {
        before.mnemonic() == Mnemonic::Cmp
            && before.op0_register() == Register::RSP
            && before.op1_register() == Register::R11
    })
}

/// Returns whether a jump uses a table of offsets to places in the same function.
fn is_jump_table(instructions: &[Instruction], at: usize) -> bool {
    let jump = &instructions[at];
    if jump.op0_kind() == OpKind::Memory {
        return !jump.is_ip_rel_memory_operand() && jump.memory_index() != Register::None;
    }
    let register = jump.op0_register();
    let before = instructions[at.saturating_sub(4)..at].iter();
    let is = |instruction: &Instruction, mnemonic| {
        instruction.mnemonic() == mnemonic && instruction.op0_register().full_register() == register
    };
    let mut seen = before.clone();
    seen.any(|instruction| is(instruction, Mnemonic::Movsxd))
        && before.clone().any(|instruction| is(instruction, Mnemonic::Add))
}

//! The texts of an input, which are checked without a copy of it: an input of many small values would
//! need many times its memory.

use serde::{
    Serialize, Serializer,
    ser::{Impossible, SerializeMap, SerializeSeq, SerializeStruct},
};
use serde_json::Error;

use super::{Check, below};

/// A serializer that checks texts and has no output.
pub(super) struct Texts<'c> {
    check: &'c mut Check,
    /// Pointer to the current value.
    pointer: String,
}

/// The members or elements of a value.
pub(super) struct Parts<'t, 'c> {
    texts: &'t mut Texts<'c>,
    /// Number of elements so far.
    index: usize,
    /// The name of the next member of a map.
    key: String,
}

impl<'c> Texts<'c> {
    pub(super) fn of(check: &'c mut Check) -> Self {
        Self { check, pointer: String::new() }
    }

    fn within(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let enclosing = self.pointer.len();
        if enclosing > 0 {
            self.pointer.push('/');
        }
        if name.contains(['~', '/']) {
            self.pointer.push_str(&below("", name));
        } else {
            self.pointer.push_str(name);
        }
        let checked = value.serialize(&mut *self);
        self.pointer.truncate(enclosing);
        checked
    }

    fn parts<'t>(&'t mut self) -> Parts<'t, 'c> {
        Parts { texts: self, index: 0, key: String::new() }
    }
}

impl Parts<'_, '_> {
    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.index += 1;
        self.texts.within(&(self.index - 1).to_string(), value)
    }
}

macro_rules! without_text {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, _: $type) -> Result<(), Error> { Ok(()) })*
    };
}

impl<'t, 'c> Serializer for &'t mut Texts<'c> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'t, 'c>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Parts<'t, 'c>;
    type SerializeStruct = Parts<'t, 'c>;
    type SerializeStructVariant = Impossible<(), Error>;

    without_text! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32)
        serialize_f64(f64) serialize_char(char) serialize_bytes(&[u8]) serialize_unit_struct(&'static str)
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        self.check.text(&self.pointer, text);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.within(name, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'t, 'c>, Error> {
        Ok(self.parts())
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        Err(not_in_contracts())
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        Err(not_in_contracts())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(not_in_contracts())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'t, 'c>, Error> {
        Ok(self.parts())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'t, 'c>, Error> {
        Ok(self.parts())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Err(not_in_contracts())
    }
}

/// The contracts have no tuples, and no enums with fields.
fn not_in_contracts() -> Error {
    serde::ser::Error::custom("must not be a tuple or an enum with fields")
}

impl SerializeSeq for Parts<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

impl SerializeMap for Parts<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let key = serde_json::to_value(key)?;
        key.as_str().unwrap_or_default().clone_into(&mut self.key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = std::mem::take(&mut self.key);
        self.texts.within(&key, value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

impl SerializeStruct for Parts<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.texts.within(name, value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}
